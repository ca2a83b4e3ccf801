//! Where a configuration comes from: a file, standard input, the command line, in this order, later lines
//! over earlier ones. The syntax is that of redis.conf: a line is a name and its values, `#` begins a
//! comment, quotes hold spaces, `include` reads another file in place. Options of the command line become
//! lines behind the file's, so an error names the line as Redis would.
use super::directive::{self, Checks};
use super::values::{Config, ConfigError};
use super::{paths, setting};
use base::quotes;
use base::reason::reason;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How deeply files may include one another, and how many may be read in all. The first ends files that
/// include themselves, the second those that include others twice, which include others twice again.
const INCLUDE_DEPTH_MAX: usize = 32;
const FILES_MAX: usize = 10_000;
/// So many faults are told of at once, the first.
const FAULTS_MAX: usize = 1000;
/// How many bytes all files together may have.
const BYTES_MAX: u64 = 64 << 20;

/// The sources that the command line names, not read yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// `-`: more lines come from standard input.
    pub reads_stdin: bool,
    /// The options as lines.
    pub options: Vec<u8>,
}

impl Source {
    /// Reads the arguments, the program's name left out: `[file] [--name value ...] [-]`.
    pub fn from_args(args: &[Vec<u8>]) -> Source {
        let mut source = Source::default();
        let mut rest = args;
        match rest {
            [first, tail @ ..] if first == b"-" => {
                source.reads_stdin = true;
                rest = tail;
            }
            [first, tail @ ..] if !first.starts_with(b"-") => {
                source.file = (!first.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(first)));
                rest = tail;
            }
            _ => {}
        }
        if !source.reads_stdin && rest.last().is_some_and(|a| a == b"-") {
            source.reads_stdin = true;
            rest = &rest[..rest.len() - 1];
        }
        source.options = options_as_lines(rest);
        source
    }

    /// The default configuration with all of this over it. `stdin` is read if the command line says so;
    /// `checks` are asked about lines that name commands.
    pub(crate) fn load_checked(
        &self,
        stdin: &mut dyn io::Read,
        checks: Checks<'_>,
    ) -> Result<Config, ConfigError> {
        self.read_with(stdin, Reading::new(checks)).map(|reading| reading.config)
    }

    /// The same for somebody who wants to know of every line that is wrong: all errors, in their order.
    pub(crate) fn check(
        &self,
        stdin: &mut dyn io::Read,
        checks: Checks<'_>,
    ) -> Result<Config, Vec<ConfigError>> {
        let reading = Reading { faults: Some(Vec::new()), ..Reading::new(checks) };
        let reading = self.read_with(stdin, reading).map_err(|error| vec![error])?;
        match reading.faults {
            Some(faults) if !faults.is_empty() => Err(faults),
            _ => Ok(reading.config),
        }
    }

    fn read_with<'c>(
        &self,
        stdin: &mut dyn io::Read,
        mut reading: Reading<'c>,
    ) -> Result<Reading<'c>, ConfigError> {
        let mut text = Vec::new();
        if let Some(file) = &self.file {
            let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            text = reading.read(&file)?;
            reading.config.file = Some(file);
        }
        if self.reads_stdin {
            stdin.read_to_end(&mut text).map_err(|e| {
                ConfigError(format!("Fatal error, can't read standard input: {}", reason(&e)))
            })?;
        }
        if !self.options.is_empty() {
            text.push(b'\n');
            text.extend_from_slice(&self.options);
        }
        reading.apply(&text, 0)?;
        Ok(reading)
    }
}

/// A configuration that is being read, and how much was read for it.
struct Reading<'c> {
    config: Config,
    checks: Checks<'c>,
    files: usize,
    bytes: u64,
    /// What is wrong so far, if reading goes on behind it; otherwise the first fault ends it.
    faults: Option<Vec<ConfigError>>,
}

/// `--name a b --other c` as two lines, values quoted.
fn options_as_lines(args: &[Vec<u8>]) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut name: Option<&[u8]> = None;
    let mut values = 0;
    for arg in args {
        // `--name` directly behind a name is its value, as in Redis, unless the name is one that may stand
        // alone.
        let starts_option = arg.starts_with(b"--") && (name.is_none_or(may_stand_alone) || values > 0);
        if starts_option {
            finish(&mut lines, name, values);
            if !lines.is_empty() {
                lines.push(b'\n');
            }
            lines.extend_from_slice(&arg[2..]);
            // `--name value` may come as one argument.
            (name, values) = (Some(&arg[2..]), usize::from(arg.contains(&b' ')));
        } else {
            if !lines.is_empty() {
                lines.push(b' ');
            }
            lines.extend(quotes::quoted(arg));
            values += 1;
        }
    }
    finish(&mut lines, name, values);
    lines
}

/// `--save` without a value turns snapshots off.
fn may_stand_alone(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"save")
}

fn finish(lines: &mut Vec<u8>, name: Option<&[u8]>, values: usize) {
    if values == 0 && name.is_some_and(may_stand_alone) {
        lines.extend_from_slice(b" \"\"");
    }
}

/// What is wrong with a line.
enum Fault {
    Here(String),
    /// With a file that it includes; the text is complete.
    InFile(ConfigError),
}

impl<'c> Reading<'c> {
    fn new(checks: Checks<'c>) -> Reading<'c> {
        Reading { config: Config::default(), checks, files: 0, bytes: 0, faults: None }
    }

    /// Applies the lines of one file, or of the command line.
    fn apply(&mut self, text: &[u8], depth: usize) -> Result<(), ConfigError> {
        for (index, line) in text.split(|b| *b == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let error = match self.apply_line(line, depth) {
                Ok(()) => continue,
                Err(Fault::InFile(error)) => error,
                Err(Fault::Here(why)) => fatal(index + 1, line, &why),
            };
            match &mut self.faults {
                Some(faults) if faults.len() < FAULTS_MAX => faults.push(error),
                Some(_) => {}
                None => return Err(error),
            }
        }
        Ok(())
    }

    /// Applies one line. Relative names behind a line `dir` mean files in that folder, as in Redis.
    fn apply_line(&mut self, line: &[u8], depth: usize) -> Result<(), Fault> {
        let words = quotes::words(line)
            .ok_or_else(|| Fault::Here("Unbalanced quotes in configuration line".into()))?;
        let Some((name, values)) = words.split_first() else { return Ok(()) };
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        if let ([file], true) = (&values[..], name.eq_ignore_ascii_case(b"include")) {
            return self.include(file, depth);
        }
        let config = &mut self.config;
        if let Some(done) = directive::apply(config, name, &values, self.checks) {
            return done.map_err(Fault::Here);
        }
        let Some(setting) = setting::find(name) else {
            return Err(Fault::Here("Bad directive or wrong number of arguments".into()));
        };
        let before = config.dir.clone();
        setting.set_from_words(config, &values).map_err(Fault::Here)?;
        match config.dir == before {
            true => Ok(()),
            false => std::env::set_current_dir(&config.dir).map_err(|e| Fault::Here(reason(&e))),
        }
    }

    fn include(&mut self, pattern: &[u8], depth: usize) -> Result<(), Fault> {
        if depth == INCLUDE_DEPTH_MAX {
            let why = format!(
                "Files include one another too deeply, over {INCLUDE_DEPTH_MAX}: does one include itself?"
            );
            return Err(Fault::Here(why));
        }
        let too_many = || Fault::Here(format!("More than {FILES_MAX} files are included"));
        for file in paths::matching(pattern, FILES_MAX).ok_or_else(too_many)? {
            if self.files == FILES_MAX {
                return Err(too_many());
            }
            let text = self.read(&file).map_err(Fault::InFile)?;
            self.apply(&text, depth + 1).map_err(Fault::InFile)?;
        }
        Ok(())
    }

    fn read(&mut self, file: &Path) -> Result<Vec<u8>, ConfigError> {
        let cannot = |why: String| {
            ConfigError(format!("Fatal error, can't open config file '{}': {why}", file.display()))
        };
        let mut text = Vec::new();
        let room = BYTES_MAX - self.bytes;
        let opened = std::fs::File::open(file).map_err(|e| cannot(reason(&e)))?;
        opened.take(room + 1).read_to_end(&mut text).map_err(|e| cannot(reason(&e)))?;
        if text.len() as u64 > room {
            return Err(cannot(format!("more than {} MB of configuration", BYTES_MAX >> 20)));
        }
        self.files += 1;
        self.bytes += text.len() as u64;
        Ok(text)
    }
}

fn fatal(line_number: usize, line: &[u8], why: &str) -> ConfigError {
    let line = String::from_utf8_lossy(line);
    ConfigError::fatal(&format!("Reading the configuration file, at line {line_number}\n>>> '{line}'\n{why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    fn source(args: &[&str]) -> Source {
        Source::from_args(&args.iter().map(|a| a.as_bytes().to_vec()).collect::<Vec<_>>())
    }

    fn load(args: &[&str], stdin: &str) -> Result<Config, String> {
        source(args).load_checked(&mut stdin.as_bytes(), Checks::NONE).map_err(|e| e.0)
    }

    fn load_text(text: &str) -> Result<Config, String> {
        load(&["-"], text)
    }

    #[test]
    fn options_override_what_comes_before() {
        let config =
            load(&["-", "--port", "7000", "--bind", "127.0.0.1", "::1"], "port 1\nhz 20 \n").unwrap();
        assert_eq!((config.port, config.hz), (7000, 20));
        assert_eq!(config.bind, ["127.0.0.1", "::1"]);
    }

    #[test]
    fn a_name_and_its_value_may_be_one_argument() {
        let config = load(&["--hz 20", "--port", "7000"], "").unwrap();
        assert_eq!((config.port, config.hz), (7000, 20));
    }

    #[test]
    fn comments_quotes_units_and_case_are_understood() {
        let text = "# hello\n\n  PORT 7\r\nrequirepass \"a \\x41\"\n\tproto-max-bulk-len 2mb";
        let config = load_text(text).unwrap();
        assert_eq!(config.port, 7);
        assert_eq!(config.requirepass, b"a A");
        assert_eq!(config.store.proto_max_bulk_len_bytes, 2 << 20);
    }

    #[test]
    fn save_may_stand_alone_and_be_empty() {
        for args in
            [&["--save", "--port", "5"][..], &["--save", "", "--port", "5"], &["--port", "5", "--save"]]
        {
            assert_eq!(load(args, "").unwrap().port, 5, "{args:?}");
        }
    }

    #[test]
    fn errors_name_the_line_and_what_is_wrong() {
        for (text, line, shown, why) in [
            ("\n#\nport abc", 3, "port abc", "argument couldn't be parsed into an integer"),
            ("nonsense 1", 1, "nonsense 1", "Bad directive or wrong number of arguments"),
            ("hz 1\nhz 10 20\n", 2, "hz 10 20", "wrong number of arguments"),
            ("hz", 1, "hz", "wrong number of arguments"),
            ("dir \"x", 1, "dir \"x", "Unbalanced quotes in configuration line"),
        ] {
            let error = load_text(text).unwrap_err();
            let expect = format!("at line {line}\n>>> '{shown}'\n{why}");
            assert!(error.ends_with(&expect), "{error}");
        }
        let error = load(&["--hz", "--port", "0"], "").unwrap_err();
        assert!(
            error.ends_with("at line 2\n>>> 'hz \"--port\" \"0\"'\nwrong number of arguments"),
            "{error}"
        );
        let error = load(&["--port", "1", "-x"], "").unwrap_err();
        assert!(error.ends_with(">>> 'port \"1\" \"-x\"'\nwrong number of arguments"), "{error}");
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let error = load(&["/no/such/file"], "").unwrap_err();
        assert_eq!(error, "Fatal error, can't open config file '/no/such/file': No such file or directory");
        assert!(load_text("include /no/such/file").unwrap_err().starts_with("Fatal error, can't open"));
    }

    #[test]
    fn included_files_are_read_in_place_and_circles_end() {
        let folder = std::env::temp_dir().join(format!("sardine-include-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("b.conf"), "hz 20\nport 2\n").unwrap();
        std::fs::write(folder.join("a.conf"), "port 1\ntimeout 9\n").unwrap();
        std::fs::write(folder.join("self.inc"), format!("include {}/self.inc", folder.display())).unwrap();
        let config = load_text(&format!("include {}/*.conf\ntimeout 10", folder.display())).unwrap();
        let circle = load_text(&format!("include {}/self.inc", folder.display())).unwrap_err();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((config.port, config.hz, config.timeout_s), (2, 20, 10));
        assert!(circle.contains("too deeply"), "{circle}");
    }

    #[test]
    fn files_that_include_others_twice_and_twice_again_end_soon() {
        let folder = std::env::temp_dir().join(format!("sardine-broad-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let itself = format!("include {}/twice.inc\n", folder.display());
        std::fs::write(folder.join("leaf.inc"), "hz 20\n").unwrap();
        let leaf = format!("include {}/leaf.inc\n", folder.display());
        for depth in 0..30 {
            let next = format!("include {}/{}.inc\n", folder.display(), depth + 1);
            std::fs::write(folder.join(format!("{depth}.inc")), next.repeat(2)).unwrap();
        }
        std::fs::write(folder.join("30.inc"), &leaf).unwrap();
        std::fs::write(folder.join("twice.inc"), itself.repeat(2)).unwrap();
        let broad = load_text(&format!("include {}/0.inc", folder.display())).unwrap_err();
        let few = load_text(&leaf.repeat(9_000)).unwrap();
        let many = load_text(&leaf.repeat(10_001)).unwrap_err();
        let endless = load_text("include /dev/zero").unwrap_err();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(broad.ends_with("More than 10000 files are included"), "{broad}");
        assert!(many.ends_with("More than 10000 files are included"), "{many}");
        assert_eq!(few.hz, 20);
        assert!(endless.ends_with("more than 64 MB of configuration"), "{endless}");
    }

    #[test]
    fn any_text_is_loaded_or_refused_without_panic() {
        let pieces = [
            "port",
            " ",
            "\n",
            "\"",
            "'",
            "\\x4",
            "bind",
            "127.0.0.1",
            "-1",
            "hz 3",
            "#",
            "\u{ff}",
            "\r",
            "save",
        ];
        let mut random = Random::new(23);
        for _ in 0..20_000 {
            let count = random.below(10);
            let text: String =
                (0..count).map(|_| pieces[random.below(pieces.len() as u64) as usize]).collect();
            if let Err(error) = load_text(&text) {
                assert!(error.contains("at line "), "{text:?}: {error}");
            }
        }
    }
}
