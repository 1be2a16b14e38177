//! The registry of backends: who is there, who is best, and why others are absent.

use crate::backend::Backend;
use crate::{Device, DeviceInfo, Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How a linked backend announces itself: a constructor, run at first use of the registry.
///
/// Backends submit one through `inventory`; [`crate::register_backend!`] writes the line.
pub struct BackendRegistration {
    construct: fn() -> Arc<dyn Backend>,
}

impl BackendRegistration {
    /// A registration of what `construct` makes.
    pub const fn new(construct: fn() -> Arc<dyn Backend>) -> Self {
        BackendRegistration { construct }
    }
}

inventory::collect!(BackendRegistration);

/// Registers a backend that is linked into the program: `register_backend!(MyBackend::new());`, once, in its
/// crate's root. The program must reference the crate (`use my_backend as _;`) or the linker drops it.
#[macro_export]
macro_rules! register_backend {
    ($backend:expr) => {
        $crate::inventory::submit! {
            $crate::BackendRegistration::new(|| ::std::sync::Arc::new($backend))
        }
    };
}

/// The environment variable that names the device of [`Device::best`] and of `"auto"`.
pub const DEVICE_VARIABLE: &str = "DRIVETRAIN_DEVICE";

/// Backends by name and the devices opened so far. The process has a global one; tests make their own.
pub struct Registry {
    backends: Mutex<Vec<Arc<dyn Backend>>>,
    opened: Mutex<HashMap<(String, usize), Slot>>,
    notes: Mutex<Vec<String>>,
}

/// A device once it is opened. Locked while opening, so that two threads do not open one device twice; others
/// are opened meanwhile.
type Slot = Arc<Mutex<Option<Device>>>;

/// A device that could be opened, or a backend that has none, with the reason.
#[derive(Debug)]
pub enum Candidate {
    /// A device.
    Present(DeviceInfo),
    /// A backend without devices.
    Absent {
        /// The backend's name.
        backend: String,
        /// Why it has none.
        reason: Error,
    },
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// An empty one.
    pub fn new() -> Registry {
        Registry {
            backends: Mutex::new(Vec::new()),
            opened: Mutex::new(HashMap::new()),
            notes: Mutex::new(Vec::new()),
        }
    }

    /// The one of the process, filled with the linked backends at first use.
    pub fn global() -> &'static Registry {
        static GLOBAL: OnceLock<Registry> = OnceLock::new();
        GLOBAL.get_or_init(|| {
            let registry = Registry::new();
            for registration in inventory::iter::<BackendRegistration> {
                if let Err(error) = registry.register((registration.construct)()) {
                    registry.note(error.to_string());
                }
            }
            registry
        })
    }

    /// Adds a backend.
    ///
    /// # Errors
    /// A name that is taken, or not of the form `[a-z][a-z0-9_]*`, or `auto`.
    pub fn register(&self, backend: Arc<dyn Backend>) -> Result<()> {
        let name = backend.name().to_string();
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let first = name.chars().next();
        if !first.is_some_and(|c| c.is_ascii_lowercase())
            || !name.chars().all(letters)
            || name == "auto"
        {
            return Err(
                Error::argument("register", format!("backend name {name:?}")).help(
                    "lower-case letters, digits and _, starting with a letter; `auto` is reserved",
                ),
            );
        }
        let mut backends = lock(&self.backends);
        if backends.iter().any(|other| other.name() == name) {
            return Err(Error::argument(
                "register",
                format!("a backend named {name:?} is there already"),
            ));
        }
        backends.push(backend);
        Ok(())
    }

    /// Names of the registered backends, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = lock(&self.backends)
            .iter()
            .map(|b| b.name().to_string())
            .collect();
        names.sort();
        names
    }

    /// Every device and every absence, best score first, absences last.
    pub fn candidates(&self) -> Vec<Candidate> {
        let mut backends = lock(&self.backends).clone();
        backends.sort_by(|a, b| a.name().cmp(b.name()));
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        for backend in backends {
            match backend.devices() {
                Ok(devices) => present.extend(devices),
                Err(reason) => absent.push(Candidate::Absent {
                    backend: backend.name().to_string(),
                    reason,
                }),
            }
        }
        present.sort_by_key(|info| std::cmp::Reverse(info.score));
        present
            .into_iter()
            .map(Candidate::Present)
            .chain(absent)
            .collect()
    }

    /// What was passed over while choosing, and why, oldest first.
    pub fn notes(&self) -> Vec<String> {
        lock(&self.notes).clone()
    }

    fn note(&self, note: String) {
        let mut notes = lock(&self.notes);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Opens a device by name: `cpu`, `cuda` (its first), `cuda:1`, `auto` (the best). Names are in lower
    /// case, without spaces. A device is opened once; later calls give the same one.
    ///
    /// # Errors
    /// A name that does not parse, an unknown backend, a number that is not there: with what there is.
    pub fn open(&self, name: &str) -> Result<Device> {
        if name == "auto" {
            return self.best();
        }
        let (backend_name, ordinal) = self.parse(name)?;
        let key = (backend_name.to_string(), ordinal);
        let slot = lock(&self.opened).get(&key).cloned();
        if let Some(device) = slot.and_then(|slot| lock(&slot).clone()) {
            return Ok(device);
        }
        let found = lock(&self.backends)
            .iter()
            .find(|b| b.name() == backend_name)
            .cloned();
        let Some(backend) = found else {
            return Err(
                Error::unavailable("device", format!("no backend named {backend_name:?}"))
                    .help(self.listing()),
            );
        };
        let devices = backend.devices().map_err(|reason| {
            Error::unavailable("device", format!("{name:?} is not available: {reason}"))
                .help(self.listing())
        })?;
        if !devices.iter().any(|info| info.ordinal == ordinal) {
            let plural = if devices.len() == 1 { "" } else { "s" };
            let labels: Vec<String> = devices.iter().map(DeviceInfo::label).collect();
            return Err(Error::unavailable(
                "device",
                format!(
                    "no device {name:?}, {} device{plural}: {}",
                    devices.len(),
                    if labels.is_empty() {
                        "none".to_string()
                    } else {
                        labels.join(", ")
                    }
                ),
            )
            .help(self.listing()));
        }
        let slot = lock(&self.opened).entry(key).or_default().clone();
        let mut opened = lock(&slot);
        if let Some(device) = &*opened {
            return Ok(device.clone());
        }
        let device = Device::new(backend.open(ordinal)?);
        *opened = Some(device.clone());
        Ok(device)
    }

    /// The backend's name and the number in a device's name.
    fn parse<'a>(&self, name: &'a str) -> Result<(&'a str, usize)> {
        let refuse = || {
            Error::argument("device", format!("{name:?} is not a device's name")).help(format!(
                "lower case, a backend and perhaps a number, as in \"cuda:0\"; {}",
                self.listing()
            ))
        };
        let (backend, number) = match name.split_once(':') {
            Some((backend, number)) => (backend, Some(number)),
            None => (name, None),
        };
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if backend.is_empty() || !backend.chars().all(letters) {
            return Err(refuse());
        }
        let ordinal = match number {
            None => 0,
            Some(digits) if !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()) => {
                digits.parse().map_err(|_| refuse())?
            }
            Some(_) => return Err(refuse()),
        };
        Ok((backend, ordinal))
    }

    /// The best device that works: the one named by `DRIVETRAIN_DEVICE` where set, else by score the first
    /// that opens and adds two numbers right. What is passed over is kept in [`Registry::notes`].
    ///
    /// # Errors
    /// When none works: with the reasons.
    pub fn best(&self) -> Result<Device> {
        match std::env::var(DEVICE_VARIABLE) {
            Ok(name) if !name.is_empty() && name != "auto" => {
                return self
                    .open(&name)
                    .map_err(|e| e.context(format!("{DEVICE_VARIABLE}={name}")));
            }
            _ => {}
        }
        let mut passed_over = Vec::new();
        let mut present = Vec::new();
        for candidate in self.candidates() {
            match candidate {
                Candidate::Present(info) => present.push(info.label()),
                Candidate::Absent { backend, reason } => {
                    passed_over.push(format!("{backend}: {reason}"))
                }
            }
        }
        let mut best = None;
        for label in present {
            match self.open(&label).and_then(|d| d.self_test().map(|()| d)) {
                Ok(device) => {
                    best = Some(device);
                    break;
                }
                Err(error) => passed_over.push(format!("{label}: {error}")),
            }
        }
        passed_over.iter().for_each(|note| self.note(note.clone()));
        best.ok_or_else(|| {
            let reasons = match passed_over.is_empty() {
                true => "no backend is linked; add one to the program".to_string(),
                false => passed_over.join("; "),
            };
            Error::unavailable("device", "no device works").help(reasons)
        })
    }

    /// Every device that can be opened, best first.
    pub fn all(&self) -> Vec<Device> {
        let mut devices = Vec::new();
        for candidate in self.candidates() {
            match candidate {
                Candidate::Present(info) => match self.open(&info.label()) {
                    Ok(device) => devices.push(device),
                    Err(error) => self.note(format!("{}: {error}", info.label())),
                },
                Candidate::Absent { backend, reason } => self.note(format!("{backend}: {reason}")),
            }
        }
        devices
    }

    /// What there is and why the rest is not, on one line, for errors.
    fn listing(&self) -> String {
        let candidates = self.candidates();
        if candidates.is_empty() {
            return "no backend is linked; add one to the program".to_string();
        }
        let mut present = Vec::new();
        let mut absent = Vec::new();
        for candidate in candidates {
            match candidate {
                Candidate::Present(info) => present.push(info.label()),
                Candidate::Absent { backend, reason } => {
                    absent.push(format!("{backend} is absent ({reason})"))
                }
            }
        }
        let mut parts = vec![format!(
            "available: {}",
            if present.is_empty() {
                "none".into()
            } else {
                present.join(", ")
            }
        )];
        parts.extend(absent);
        parts.join("; ")
    }
}

/// A lock whose holder panicked still guards valid lists here: no update is left half-done.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
