//! Builds Lua 5.1.5 with one change (README.md), for `mlua`, which takes this crate for `lua-src`.
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The versions that there are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Lua51,
}
pub use Version::Lua51;

/// A build with the settings of the build script that runs it.
#[derive(Debug, Default)]
pub struct Build;

/// Where a build has put its results.
#[derive(Debug)]
pub struct Artifacts {
    include: PathBuf,
    lib: PathBuf,
}

const NAME: &str = "lua5.1";

impl Build {
    pub fn new() -> Build {
        Build
    }

    /// Compiles the interpreter and its libraries into one archive.
    pub fn build(&self, version: Version) -> Artifacts {
        let Lua51 = version;
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua-5.1.5");
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("a build script has OUT_DIR"));
        let (include, lib) = (out.join("include"), out.join("lib"));
        fs::create_dir_all(&include).expect("OUT_DIR can be written");
        let mut build = cc::Build::new();
        // `print_cargo_metadata` tells cargo what to link; cc would tell it again.
        build.cargo_metadata(false).warnings(false).include(&sources).out_dir(&lib);
        build.define("LUA_USE_LINUX", None).flag_if_supported("-fno-common");
        if cfg!(debug_assertions) {
            build.define("LUA_USE_APICHECK", None).debug(true);
        }
        for entry in fs::read_dir(&sources).expect("the sources are beside this file") {
            let path = entry.expect("the sources can be listed").path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("c") => drop(build.file(&path)),
                Some("h") => {
                    let name = path.file_name().expect("a file has a name");
                    fs::copy(&path, include.join(name)).expect("a header can be copied");
                }
                _ => {}
            }
        }
        println!("cargo:rerun-if-changed={}", sources.display());
        build.compile(NAME);
        Artifacts { include, lib }
    }
}

impl Artifacts {
    /// Tells cargo what to link.
    pub fn print_cargo_metadata(&self) {
        println!("cargo:rustc-link-search=native={}", self.lib.display());
        println!("cargo:rustc-link-lib=static={NAME}");
        println!("cargo:include={}", self.include.display());
        println!("cargo:lib={}", self.lib.display());
    }
}
