//! Compiles the kernels, which takes seconds, and keeps the result in the cache folder of the user.

use super::capability::{capability, has_tiles};
use super::error::CudaError;
use super::kernels::SOURCES;
use cudarc::driver::CudaContext;
use cudarc::nvrtc::{CompileOptions, Ptx, compile_ptx_with_opts, sys};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// The compiled kernels for a device.
pub(super) fn compiled(context: &Arc<CudaContext>) -> Result<Ptx, CudaError> {
    let capability = capability(context)?;
    let (major, minor) = capability;
    // `wgmma` needs the architecture-specific target `sm_90a`.
    let suffix = if has_tiles(capability) { "a" } else { "" };
    let architecture = format!("--gpu-architecture=sm_{major}{minor}{suffix}");
    // A process may open the device several times.
    static COMPILED: Mutex<Option<(String, Ptx)>> = Mutex::new(None);
    let mut known = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, ptx)) = known.as_ref().filter(|(of, _)| *of == architecture) {
        return Ok(ptx.clone());
    }
    let source = SOURCES.join("\n");
    let options = options(&architecture);
    let path = cache_folder().map(|folder| folder.join(name(&source, &options, Versions::here())));
    let ptx = match path.as_deref().and_then(read) {
        Some(text) => Ptx::from_src(text),
        None => {
            let ptx = compile_ptx_with_opts(source, options)
                .map_err(CudaError::failed("compile the kernels"))?;
            if let Some(path) = &path {
                write(path, &ptx.to_src());
            }
            ptx
        }
    };
    *known = Some((architecture, ptx.clone()));
    Ok(ptx)
}

fn options(architecture: &str) -> CompileOptions {
    CompileOptions {
        options: vec![architecture.to_owned(), "-default-device".to_owned()],
        ftz: Some(true),
        ..CompileOptions::default()
    }
}

/// The versions of what compiles and runs the kernels; 0 where they are unknown.
#[derive(Clone, Copy)]
struct Versions {
    /// Major and minor version of the compiler.
    compiler: (i32, i32),
    /// The CUDA version of the driver, as 1000 times the major version plus 10 times the minor one.
    driver: i32,
}

impl Versions {
    fn here() -> Versions {
        let mut versions = Versions { compiler: (0, 0), driver: 0 };
        let (major, minor) = &mut versions.compiler;
        // SAFETY: the functions write to these numbers only. If they fail, the numbers stay 0.
        unsafe {
            sys::nvrtcVersion(&raw mut *major, &raw mut *minor);
            cudarc::driver::sys::cuDriverGetVersion(&raw mut versions.driver);
        }
        versions
    }
}

/// The name of the file, which depends on the source, the options, which name the device, the compiler and the driver.
fn name(source: &str, options: &CompileOptions, versions: Versions) -> String {
    let Versions { compiler: (major, minor), driver } = versions;
    let key = format!("{options:?} {major}.{minor} {driver} {source}");
    format!("kernels-{:032x}.ptx", xxh3_128(key.as_bytes()))
}

/// `latens` in the cache folder of the user, if there is one.
fn cache_folder() -> Option<PathBuf> {
    let folder =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let under_home = || folder("HOME").map(|home| home.join(".cache"));
    let all = folder("XDG_CACHE_HOME").or_else(|| folder("LOCALAPPDATA")).or_else(under_home);
    all.map(|folder| folder.join("latens"))
}

/// Reads a file that [`write`] has written, unless it is damaged.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let (ptx, sum) = text.rsplit_once("\n// ")?;
    (sum == checksum(ptx)).then(|| ptx.to_owned())
}

/// Writes a file with a checksum in its last line, a comment. Without it, the next start takes seconds longer.
fn write(path: &Path, ptx: &str) {
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let written = path
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(&part, format!("{ptx}\n// {}", checksum(ptx))))
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
}

fn checksum(ptx: &str) -> String {
    format!("{:016x}", xxh3_64(ptx.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_source_the_architecture_and_the_versions_change_the_name() {
        let versions = Versions { compiler: (12, 4), driver: 12040 };
        let of = |source: &str, architecture: &str, versions: Versions| {
            name(source, &options(&format!("--gpu-architecture={architecture}")), versions)
        };
        let names = [
            of("a", "sm_80", versions),
            of("b", "sm_80", versions),
            of("a", "sm_90a", versions),
            of("a", "sm_80", Versions { driver: 12050, ..versions }),
            of("a", "sm_80", Versions { compiler: (12, 5), ..versions }),
            of("a", "sm_80", Versions { compiler: (13, 4), ..versions }),
        ];
        let distinct: HashSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        assert_eq!(names[0], of("a", "sm_80", versions));
    }

    #[test]
    fn a_damaged_file_is_not_used() {
        let folder = std::env::temp_dir().join(format!("latens-kernels-{}", std::process::id()));
        let path = folder.join("some").join("kernels.ptx");
        assert_eq!(read(&path), None);
        write(&path, ".version 8.0\n// a comment\n");
        assert_eq!(read(&path).as_deref(), Some(".version 8.0\n// a comment\n"));
        let text = fs::read_to_string(&path).unwrap();
        for damaged in
            [text.replace("8.0", "8.1"), text[..text.len() / 2].to_owned(), String::new()]
        {
            fs::write(&path, damaged).unwrap();
            assert_eq!(read(&path), None);
        }
        assert_eq!(fs::read_dir(folder.join("some")).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
