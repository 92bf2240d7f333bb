//! The memory that this process can still allocate.

use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The memory that this process can still allocate, and what limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvailableMemory {
    /// Number of bytes.
    pub bytes: u64,
    /// The smallest of all limits.
    pub limit: MemoryLimit,
}

/// A limit on the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryLimit {
    /// The free memory of the machine.
    Machine,
    /// The control group of the process, for example that of a container.
    ControlGroup,
    /// A resource limit of the process (`ulimit -v`, `ulimit -d`).
    Process,
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryLimit::Machine => "on this machine",
            MemoryLimit::ControlGroup => "in this control group",
            MemoryLimit::Process => "within the resource limits of this process",
        })
    }
}

impl AvailableMemory {
    /// Asks the system. `None` if it does not tell, which is so everywhere except on Linux.
    pub fn now() -> Option<AvailableMemory> {
        AvailableMemory::under(Path::new("/"))
    }

    /// Reads `proc` and `sys` in the directory `root`.
    fn under(root: &Path) -> Option<AvailableMemory> {
        let machine = machine(root).map(|bytes| (bytes, MemoryLimit::Machine));
        let groups = control_groups(root).into_iter().filter_map(|group| group.available());
        let groups = groups.map(|bytes| (bytes, MemoryLimit::ControlGroup));
        let process = process(root).into_iter().map(|bytes| (bytes, MemoryLimit::Process));
        let all = machine.into_iter().chain(groups).chain(process);
        let (bytes, limit) = all.min_by_key(|&(bytes, _)| bytes)?;
        Some(AvailableMemory { bytes, limit })
    }
}

/// Memory of this process in bytes: now, and at its peak. `None` where the system does not tell.
pub fn resident_memory() -> Option<(u64, u64)> {
    let status = read(Path::new("/"), "proc/self/status")?;
    Some((kilobytes(&status, "VmRSS:")?, kilobytes(&status, "VmHWM:")?))
}

fn machine(root: &Path) -> Option<u64> {
    kilobytes(&read(root, "proc/meminfo")?, "MemAvailable:")
}

/// What is left of the limits on the address space and on the data segment.
fn process(root: &Path) -> Vec<u64> {
    let (Some(limits), Some(status)) =
        (read(root, "proc/self/limits"), read(root, "proc/self/status"))
    else {
        return Vec::new();
    };
    let left = |(limit, used): (&str, &str)| {
        let line = limits.lines().find_map(|line| line.strip_prefix(limit))?;
        // An unlimited resource is not a number.
        let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(limit.saturating_sub(kilobytes(&status, used)?))
    };
    [("Max address space", "VmSize:"), ("Max data size", "VmData:")]
        .into_iter()
        .filter_map(left)
        .collect()
}

/// A control group and the names of its files.
struct ControlGroup {
    folder: PathBuf,
    files: &'static Files,
}

struct Files {
    limit: &'static str,
    usage: &'static str,
    /// Keys of `memory.stat` whose memory the kernel can reclaim.
    reclaimable: [&'static str; 2],
}

const VERSION_2: Files = Files {
    limit: "memory.max",
    usage: "memory.current",
    reclaimable: ["inactive_file", "active_file"],
};
const VERSION_1: Files = Files {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: ["total_inactive_file", "total_active_file"],
};

impl ControlGroup {
    /// What is left of its limit; `None` without a limit.
    fn available(&self) -> Option<u64> {
        let number = |name| read(&self.folder, name)?.trim().parse::<u64>().ok();
        // The limit `max` is not a number.
        let limit = number(self.files.limit)?;
        let usage = number(self.files.usage)?;
        let stat = read(&self.folder, "memory.stat").unwrap_or_default();
        let cached = self.files.reclaimable.map(|key| field(&stat, key).unwrap_or(0));
        Some(limit.saturating_sub(usage.saturating_sub(cached.iter().sum())))
    }
}

/// The control groups of this process: its own and those above it, each of which may have a limit.
fn control_groups(root: &Path) -> Vec<ControlGroup> {
    let Some(list) = read(root, "proc/self/cgroup") else { return Vec::new() };
    let mut groups = Vec::new();
    for line in list.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (mount, files) = match controllers {
            "" => ("sys/fs/cgroup", &VERSION_2),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", &VERSION_1)
            }
            _ => continue,
        };
        // In a container, the path may be that of the host and not exist here: then the root is the group.
        let names = Path::new(path).components().filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        let mut folder = root.join(mount);
        groups.push(ControlGroup { folder: folder.clone(), files });
        for name in names {
            folder.push(name);
            groups.push(ControlGroup { folder: folder.clone(), files });
        }
    }
    groups
}

fn read(folder: &Path, name: &str) -> Option<String> {
    fs::read_to_string(folder.join(name)).ok()
}

/// The value of a line such as `MemAvailable:  1024 kB`, in bytes.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    field(text, key).map(|kilobytes| kilobytes.saturating_mul(1024))
}

/// The number after a key at the start of a line.
fn field(text: &str, key: &str) -> Option<u64> {
    let fields = text.lines().map(str::split_whitespace);
    let mut found =
        fields.filter_map(|mut fields| (fields.next()? == key).then(|| fields.next())?);
    found.next()?.parse().ok()
}

/// A number of bytes with a binary unit, for messages: `1.5 GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let (mut value, mut units) = (self.0 as f64 / 1024.0, UNITS.iter());
        let mut unit = units.next().expect("there are units");
        // 1023.95 would be printed as 1024.0.
        while value >= 1023.95 {
            let Some(next) = units.next() else { break };
            (value, unit) = (value / 1024.0, next);
        }
        write!(f, "{value:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MemoryLimit::{ControlGroup, Machine, Process};

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
                          Max cpu time              unlimited            unlimited            seconds   \n";

    /// A system with these files.
    fn available(files: &[(&str, &str)]) -> Option<(u64, MemoryLimit)> {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        AvailableMemory::under(root.path()).map(|available| (available.bytes, available.limit))
    }

    const MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemTotal:  16000 kB\nMemFree:  9 kB\nMemAvailable:    8000 kB\n");

    #[test]
    fn a_system_that_tells_nothing_has_no_limit() {
        assert_eq!(available(&[]), None);
        assert_eq!(available(&[("proc/meminfo", "MemTotal: 16000 kB\n")]), None);
        assert_eq!(available(&[("proc/self/cgroup", "nonsense\n0:\n\n")]), None);
    }

    #[test]
    fn the_machine_limits_a_process_without_other_limits() {
        let limits = format!("{LIMITS}Max address space         unlimited   unlimited   bytes\n");
        let files = [
            MEMINFO,
            ("proc/self/limits", &limits),
            ("proc/self/status", "VmSize:  100 kB\n"),
            ("proc/self/cgroup", "0::/user\n"),
            ("sys/fs/cgroup/user/memory.max", "max\n"),
            ("sys/fs/cgroup/user/memory.current", "123\n"),
        ];
        assert_eq!(available(&files), Some((8000 * 1024, Machine)));
    }

    #[test]
    fn every_group_above_the_process_limits_it() {
        let list = ("proc/self/cgroup", "0::/outer/inner\n");
        let outer = [
            ("sys/fs/cgroup/outer/memory.max", "5000"),
            ("sys/fs/cgroup/outer/memory.current", "4000"),
            // The page cache can be reclaimed.
            ("sys/fs/cgroup/outer/memory.stat", "anon 1\ninactive_file 300\nactive_file 200\n"),
        ];
        let inner = [
            ("sys/fs/cgroup/outer/inner/memory.max", "4000"),
            ("sys/fs/cgroup/outer/inner/memory.current", "1000"),
        ];
        let all = [&[MEMINFO, list][..], &outer, &inner].concat();
        assert_eq!(available(&all), Some((1500, ControlGroup)));
        let inner = [&[MEMINFO, list][..], &inner].concat();
        assert_eq!(available(&inner), Some((3000, ControlGroup)));
    }

    #[test]
    fn a_container_sees_its_group_as_the_root() {
        let root =
            [("sys/fs/cgroup/memory.max", "4096"), ("sys/fs/cgroup/memory.current", "96"), MEMINFO];
        for path in ["/", "/docker/of/the/host", "/../../elsewhere"] {
            let list = format!("0::{path}\n");
            let files = [&root[..], &[("proc/self/cgroup", &list)]].concat();
            assert_eq!(available(&files), Some((4000, ControlGroup)), "{path}");
        }
    }

    #[test]
    fn the_first_version_of_control_groups_has_other_names() {
        let files = [
            MEMINFO,
            ("proc/self/cgroup", "3:cpu,cpuacct:/a\n2:memory:/a\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3000"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1000"),
            ("sys/fs/cgroup/memory/a/memory.stat", "inactive_file 9\ntotal_inactive_file 500\n"),
        ];
        assert_eq!(available(&files), Some((2500, ControlGroup)));
    }

    #[test]
    fn resource_limits_of_the_process_count() {
        let limits = format!(
            "{LIMITS}Max address space         3072000              unlimited            bytes     \n\
             Max data size             1024000              unlimited            bytes     \n"
        );
        let status = "VmSize:\t    1000 kB\nVmData:\t     500 kB\n";
        let files = [MEMINFO, ("proc/self/limits", &limits), ("proc/self/status", status)];
        assert_eq!(available(&files), Some((1_024_000 - 500 * 1024, Process)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn linux_tells_the_available_and_the_resident_memory() {
        assert!(AvailableMemory::now().unwrap().bytes > 0);
        let (now, peak) = resident_memory().unwrap();
        assert!(0 < now && now <= peak);
    }
}
