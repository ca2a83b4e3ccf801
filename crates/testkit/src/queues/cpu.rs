//! What a queue costs several servers: BullMQ with nobody killed, the servers taking turns, so that what else
//! the machine does falls on all of them.
use super::Options;
use super::drive::run_in_phases;

/// What was measured on a server, in microseconds of its processor time a job, a figure a round.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub name: String,
    /// While jobs are added.
    pub add_us: Vec<f64>,
    /// While they are done.
    pub work_us: Vec<f64>,
}

impl Measured {
    /// The medians of both.
    pub fn medians(&self) -> [f64; 2] {
        [median(&self.add_us), median(&self.work_us)]
    }
}

/// Runs them all in each round, as `options` says but for the server, and tells of each run.
pub fn measure(
    servers: &[(String, Vec<String>)],
    options: &Options,
    rounds: u64,
    mut tell: impl FnMut(&str),
) -> Result<Vec<Measured>, String> {
    let mut measured: Vec<Measured> =
        servers.iter().map(|(name, _)| Measured { name: name.clone(), ..Measured::default() }).collect();
    for round in 0..rounds {
        for ((name, words), its) in servers.iter().zip(&mut measured) {
            let seed = options.seed.wrapping_add(round);
            let one = Options {
                name: name.clone(),
                server: words.clone(),
                seed,
                kills: 0,
                crashes: 0,
                ..options.clone()
            };
            let [add_us, work_us] = run_in_phases(&one)?;
            tell(&format!(
                "round {}: {name} {add_us:.1} us to add a job, {work_us:.1} us to do it",
                round + 1
            ));
            its.add_us.push(add_us);
            its.work_us.push(work_us);
        }
    }
    Ok(measured)
}

pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_those_of_the_rounds() {
        let measured =
            Measured { add_us: vec![3.0, 1.0, 2.0], work_us: vec![4.0, 1.0], ..Measured::default() };
        assert_eq!(measured.medians(), [2.0, 2.5]);
    }
}
