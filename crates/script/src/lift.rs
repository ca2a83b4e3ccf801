//! Functions within a script that are the same at every run, made once.
//!
//! Scripts of job queues begin with dozens of functions that they share: `local function ... end`. Lua makes
//! each anew whenever the script runs, with a cell for each variable that it catches, and collects them
//! afterwards. Most catch nothing but each other and `local call = redis.call`, so they can as well be made
//! once:
//!
//! ```text
//! compiled    CLOSURE r function      lifted    GETUPVALUE r, of the variable that holds the function
//!             MOVE    0 caught                  JMP 0
//! ```
//! A second chunk, the *maker*, makes them with what they catch, and returns them.
//!
//! Nobody can tell, if what a function catches is *constant*: a field of a library, a literal, or a function
//! that is lifted itself, in a register that nothing else is ever put into, neither by the script nor by a
//! function that has caught it; it is there before the function is made, whichever way the script takes; and
//! the function is not made in a loop, where each would be another. It is never collected then, and looks
//! otherwise as bytecode, so a script that names what tells these is left as it is.
use crate::dump::{
    ARGUMENTS, CALL, CALL_LAST, CLOSE, CLOSURE, CONCATENATE, Constant, EQUAL, Function, GET_UPVALUE, JUMP,
    LOAD_BOOLEAN, LOAD_CONSTANT, LOAD_NIL, LOOP, LOOP_OVER, METHOD, MOVE, NOTHING, PREPARE_LOOP, RETURN,
    SET_GLOBAL, SET_LIST, SET_TABLE, SET_UPVALUE, TEST, VARIADIC, code_of, operand_a, operand_b, operand_bx,
    operand_c, with_a_b, with_a_bx,
};
use crate::fold::{Maker, Name, ValueOf, Variables, fold_names, leads_to, may_be_named};
use std::ops::Range;

/// Registers that an instruction can name.
const REGISTERS: usize = 256;
/// The maker uses no more of them, so it makes no more functions than that.
const MAKER_REGISTERS: u8 = 180;
/// A function that is lifted gets no more variables around it than this.
const UPVALUES_MAX: usize = 250;

/// By these a script can tell whether a function was collected, or which instructions it has.
const TELLING: [&[u8]; 3] = [b"__mode", b"collectgarbage", b"dump"];

/// Whether a function, or one within it, has any of these texts among its constants.
fn names_any(function: &Function<'_>, texts: &[&[u8]]) -> bool {
    let is_any = |constant: &Constant<'_>| matches!(constant, Constant::Text(text) if texts.contains(text));
    function.constants.iter().any(is_any) || function.functions.iter().any(|inner| names_any(inner, texts))
}

/// Lifts functions out of a chunk that finds the fields of `around` in its first variables. The functions are
/// its next ones. None where there is nothing to lift.
pub(crate) fn lift<'d, V>(
    dump: &[u8],
    chunk: &mut Function<'d>,
    around: &Variables<'d, V>,
    value_of: ValueOf<'_, V>,
) -> Option<Maker<V>> {
    let is_plain = chunk.variadic == VARIADIC && chunk.parameters == 0;
    if chunk.functions.is_empty() || !is_plain || names_any(chunk, &TELLING) {
        return None;
    }
    let survey = Survey::new(chunk)?;
    let within = std::mem::take(&mut chunk.functions);
    let mut draft = Draft::new(within, value_of);
    for &at in &survey.steps {
        draft.look_at(at, &chunk.code, &survey, around);
    }
    draft.code.push(with_a_b(RETURN, 0, u32::from(draft.used) + 1));
    let Draft { code, functions, variables, results, lifted, within, used, .. } = draft;
    for (place, (at, caught)) in lifted.iter().enumerate() {
        let variable = (around.values.len() + place) as u32;
        chunk.code[*at] = with_a_b(GET_UPVALUE, operand_a(chunk.code[*at]), variable);
        chunk.code[at + 1..=at + caught].fill(NOTHING);
        chunk.names.push(b"");
    }
    renumber(&mut chunk.code, &survey.steps, &within);
    chunk.functions = within.into_iter().flatten().collect();
    let maker = Function::beside(chunk, (code, used.max(2)), functions, variables.fields().collect());
    (!results.is_empty()).then(|| Maker { dump: maker.dumped(dump), values: variables.values, results })
}

/// Has those that are still made name their functions by what is left of these.
fn renumber(code: &mut [u32], steps: &[usize], within: &[Option<Function<'_>>]) {
    let mut left = 0;
    let numbers: Vec<u32> = within
        .iter()
        .map(|function| {
            left += u32::from(function.is_some());
            left.wrapping_sub(1)
        })
        .collect();
    for &at in steps {
        if code_of(code[at]) == CLOSURE {
            code[at] = with_a_bx(CLOSURE, operand_a(code[at]), numbers[operand_bx(code[at])]);
        }
    }
}

/// What is known of a chunk beforehand.
struct Survey {
    /// The places of instructions: what stands there is none where it says what a function catches, or is a
    /// number.
    steps: Vec<usize>,
    /// Which places a jump may leave out, and which may run more than once.
    skipped: Vec<bool>,
    repeated: Vec<bool>,
    /// Which instructions are the last to write to the register that they name first.
    last: Vec<bool>,
}

impl Survey {
    fn new(chunk: &Function<'_>) -> Option<Survey> {
        let steps = steps(chunk)?;
        let places = chunk.code.len();
        // How many more jumps lead over a place, or back to before it, than over the place before.
        let (mut skips, mut repeats) = (vec![0; places + 1], vec![0; places + 1]);
        for &at in &steps {
            let (marks, range) = match leads_to(at, chunk.code[at]) {
                Some(place) if place > places => return None,
                Some(place) if place > at => (&mut skips, at + 1..place),
                Some(place) => (&mut repeats, place..at + 1),
                None => continue,
            };
            marks[range.start] += 1;
            marks[range.end] -= 1;
        }
        let (skipped, repeated) = (has_any(&skips).collect(), has_any(&repeats).collect());
        let last = last_writes(chunk, &steps)?;
        Some(Survey { steps, skipped, repeated, last })
    }
}

/// Which instructions write to the register that they name first, so that nothing else does later: neither
/// the chunk nor a function within it, ever.
fn last_writes(chunk: &Function<'_>, steps: &[usize]) -> Option<Vec<bool>> {
    let mut written_later = [false; REGISTERS];
    for (at, is_assigned) in caught_and_assigned(chunk, steps)? {
        if is_assigned && code_of(chunk.code[at]) == MOVE {
            *written_later.get_mut(operand_b(chunk.code[at]))? = true;
        }
    }
    // A call leaves anything in the registers from its own on.
    let mut called_later = REGISTERS;
    let mut last = vec![false; chunk.code.len()];
    for &at in steps.iter().rev() {
        let register = operand_a(chunk.code[at]) as usize;
        last[at] = register < called_later && !written_later[register];
        for range in written(chunk.code[at]) {
            match range.end {
                REGISTERS => called_later = called_later.min(range.start),
                _ => written_later.get_mut(range)?.fill(true),
            }
        }
    }
    Some(last)
}

/// Whether the sum of these is above zero, up to each.
fn has_any(differences: &[i32]) -> impl Iterator<Item = bool> {
    let mut sum = 0;
    differences.iter().map(move |difference| {
        sum += difference;
        sum > 0
    })
}

fn steps(function: &Function<'_>) -> Option<Vec<usize>> {
    let (mut steps, mut at) = (Vec::new(), 0);
    while let Some(&instruction) = function.code.get(at) {
        steps.push(at);
        at += 1 + match code_of(instruction) {
            CLOSURE => usize::from(function.functions.get(operand_bx(instruction))?.upvalues),
            SET_LIST => usize::from(operand_c(instruction) == 0),
            _ => 0,
        };
    }
    (at == function.code.len()).then_some(steps)
}

/// What functions within this one catch, by the place that says so, and whether they assign to it.
fn caught_and_assigned(function: &Function<'_>, steps: &[usize]) -> Option<Vec<(usize, bool)>> {
    let mut caught = Vec::new();
    for &at in steps {
        if code_of(function.code[at]) == CLOSURE {
            let inner = function.functions.get(operand_bx(function.code[at]))?;
            caught.extend(assigned_around(inner)?.into_iter().zip(at + 1..).map(|(is, place)| (place, is)));
        }
    }
    Some(caught)
}

/// To which of the variables around it a function assigns, or one within it.
fn assigned_around(function: &Function<'_>) -> Option<Vec<bool>> {
    let steps = steps(function)?;
    let mut assigned = vec![false; usize::from(function.upvalues)];
    let own = steps.iter().filter(|at| code_of(function.code[**at]) == SET_UPVALUE).copied();
    let caught = caught_and_assigned(function, &steps)?.into_iter().filter_map(|(at, is)| is.then_some(at));
    for at in own.chain(caught.filter(|at| code_of(function.code[*at]) == GET_UPVALUE)) {
        *assigned.get_mut(operand_b(function.code[at]))? = true;
    }
    Some(assigned)
}

/// The registers that an instruction may write to.
pub(crate) fn written(instruction: u32) -> [Range<usize>; 2] {
    let (a, none) = (operand_a(instruction) as usize, 0..0);
    match code_of(instruction) {
        SET_GLOBAL..=SET_TABLE | JUMP | EQUAL..=TEST | RETURN | SET_LIST | CLOSE => [none.clone(), none],
        LOAD_NIL => [a..operand_b(instruction) + 1, none],
        METHOD => [a..a + 2, none],
        CONCATENATE => [a..a + 1, operand_b(instruction)..operand_c(instruction) + 1],
        CALL | CALL_LAST | ARGUMENTS => [a..REGISTERS, none],
        LOOP | PREPARE_LOOP => [a..a + 4, none],
        LOOP_OVER => [a + 3..REGISTERS, none],
        _ => [a..a + 1, none],
    }
}

/// What is in a register of the chunk, where that is constant.
#[derive(Clone, Copy)]
enum Known<'d> {
    Field(Name<'d>),
    /// What loads it.
    Literal(u32),
    /// The maker has it in this register.
    Made(u32),
}

/// The maker as far as it has come.
struct Draft<'d, 'f, V> {
    code: Vec<u32>,
    functions: Vec<Function<'d>>,
    variables: Variables<'d, V>,
    value_of: ValueOf<'f, V>,
    /// How many registers it uses, and in which of them the functions are.
    used: u8,
    results: Vec<u8>,
    /// The functions of the chunk that it still has.
    within: Vec<Option<Function<'d>>>,
    /// Where functions were made that are lifted, and how much they catch.
    lifted: Vec<(usize, usize)>,
    known: [Option<Known<'d>>; REGISTERS],
}

impl<'d, 'f, V> Draft<'d, 'f, V> {
    fn new(within: Vec<Function<'d>>, value_of: ValueOf<'f, V>) -> Draft<'d, 'f, V> {
        Draft {
            code: Vec::new(),
            functions: Vec::new(),
            variables: Variables::new(),
            value_of,
            used: 0,
            results: Vec::new(),
            within: within.into_iter().map(Some).collect(),
            lifted: Vec::new(),
            known: [None; REGISTERS],
        }
    }

    /// The next instruction of the chunk.
    fn look_at(&mut self, at: usize, code: &[u32], survey: &Survey, around: &Variables<'d, V>) {
        let instruction = code[at];
        let register = operand_a(instruction);
        let stays = survey.last[at] && !survey.skipped[at];
        let known = match code_of(instruction) {
            CLOSURE if !survey.repeated[at] => {
                let itself = stays.then_some(register);
                self.lift(at, &code[at..], itself).map(Known::Made)
            }
            GET_UPVALUE => around.name(operand_b(instruction)).map(Known::Field),
            LOAD_CONSTANT => Some(Known::Literal(instruction)),
            LOAD_BOOLEAN if operand_c(instruction) == 0 => Some(Known::Literal(instruction)),
            LOAD_NIL if operand_b(instruction) == register as usize => Some(Known::Literal(instruction)),
            _ => None,
        };
        if known.is_some() && stays {
            self.known[register as usize] = known;
        }
    }

    /// Lifts a function that is made by the first of these instructions, if what it catches is constant, or
    /// is the function `itself`. Returns the maker's register that holds it.
    fn lift(&mut self, at: usize, code: &[u32], itself: Option<u32>) -> Option<u32> {
        let number = operand_bx(code[0]);
        let count = usize::from(self.within.get(number)?.as_ref()?.upvalues);
        if may_be_named(operand_a(code[0]), code.get(1 + count..)?) {
            return None;
        }
        let mut caught = Vec::with_capacity(count);
        for says in code.get(1..=count)? {
            let register = operand_b(*says);
            match code_of(*says) {
                MOVE if itself == Some(register as u32) => caught.push(None),
                MOVE => caught.push(Some(self.held(register)?)),
                _ => return None,
            }
        }
        let own = self.register()?;
        let mut function = self.within[number].take()?;
        let fetched = self.fold(&mut function);
        self.code.push(with_a_bx(CLOSURE, own, self.functions.len() as u32));
        self.code.extend(caught.iter().map(|caught| with_a_b(MOVE, 0, caught.unwrap_or(own))));
        self.code.extend(fetched.iter().map(|variable| with_a_b(GET_UPVALUE, 0, *variable)));
        self.functions.push(function);
        self.results.push(own as u8);
        self.lifted.push((at, count));
        Some(own)
    }

    /// Has a function find what it looks up in libraries in new variables around it. Returns which of the
    /// maker's these are.
    fn fold(&mut self, function: &mut Function<'d>) -> Vec<u32> {
        let own = usize::from(function.upvalues);
        let mut fetched: Vec<(Name<'d>, u32)> = Vec::new();
        fold_names(function, |name| {
            let known = fetched.iter().position(|(known, _)| *known == name);
            let place = known.unwrap_or(fetched.len());
            if known.is_none() {
                let variable = self.variables.number_of(name, self.value_of)?;
                fetched.push((name, Some(variable).filter(|_| own + place < UPVALUES_MAX)?));
            }
            Some((own + place) as u32)
        });
        function.upvalues += fetched.len() as u8;
        function.names.extend(fetched.iter().map(|((_, field), _)| *field));
        fetched.into_iter().map(|(_, variable)| variable).collect()
    }

    /// The maker's register with what is in that one of the chunk.
    fn held(&mut self, register: usize) -> Option<u32> {
        let known = (*self.known.get(register)?)?;
        if let Known::Made(own) = known {
            return Some(own);
        }
        let variable = match known {
            Known::Field(name) => Some(self.variables.number_of(name, self.value_of)?),
            _ => None,
        };
        let own = self.register()?;
        self.code.push(match (known, variable) {
            (Known::Literal(load), _) if code_of(load) == LOAD_NIL => with_a_b(LOAD_NIL, own, own),
            (Known::Literal(load), _) => load & !(0xff << 6) | own << 6,
            (_, variable) => with_a_b(GET_UPVALUE, own, variable?),
        });
        self.known[register] = Some(Known::Made(own));
        Some(own)
    }

    fn register(&mut self) -> Option<u32> {
        let own = Some(self.used).filter(|used| *used < MAKER_REGISTERS)?;
        self.used += 1;
        Some(u32::from(own))
    }
}

#[cfg(test)]
#[path = "lift_tests.rs"]
mod tests;
