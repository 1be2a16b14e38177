//! The caching allocator over a device's raw memory: size classes, a limit, statistics.
//!
//! Every backend gets it. Freed memory is kept by size class and handed out again, so a steady training
//! loop asks the system for nothing. When the device (or the limit) refuses, the cache is emptied, the
//! device trimmed, and the request made once more.

use crate::backend::{Device, MemoryStats, RawBuffer};
use crate::registry::lock;
use crate::{Error, ErrorKind, Result};
use std::sync::Mutex;

/// Free buffers of one device by size class.
#[derive(Default)]
pub(crate) struct Allocator {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By [`class_index`].
    free: Vec<Vec<RawBuffer>>,
    in_use: u64,
    reserved: u64,
    peak: u64,
    limit: Option<u64>,
}

/// The size class of a request: multiples of 64 bytes up to 1 KiB, then eight classes to a power of two,
/// so that at most an eighth is lost.
fn class(bytes: usize) -> usize {
    if bytes <= 1024 {
        return bytes.max(1).next_multiple_of(64);
    }
    let step = 1usize << (bytes.ilog2() - 3);
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

/// The place of a size class among all.
fn class_index(size: usize) -> usize {
    if size <= 1024 {
        return size / 64;
    }
    // The power of two and the three bits below it.
    let power = size.ilog2() as usize;
    16 + (power - 10) * 8 + (size >> (power - 3) & 7)
}

impl Allocator {
    /// Memory of at least `bytes`.
    pub(crate) fn allocate(&self, device: &dyn Device, bytes: usize) -> Result<RawBuffer> {
        let size = class(bytes);
        {
            let mut state = lock(&self.state);
            if let Some(buffer) = state.free.get_mut(class_index(size)).and_then(Vec::pop) {
                state.take(size);
                return Ok(buffer);
            }
        }
        let first = self.fresh(device, size);
        let Err(error) = first else { return first };
        if error.kind() != ErrorKind::OutOfMemory {
            return Err(error);
        }
        self.empty(device);
        device.trim();
        self.fresh(device, size)
    }

    fn fresh(&self, device: &dyn Device, size: usize) -> Result<RawBuffer> {
        let mut state = lock(&self.state);
        let after = state.reserved.saturating_add(size as u64);
        if let Some(limit) = state.limit.filter(|&limit| after > limit) {
            return Err(Error::new(
                ErrorKind::OutOfMemory,
                "allocate",
                format!(
                    "{size} bytes asked, {} in use, limit {limit} bytes",
                    state.in_use
                ),
            )
            .on(device.info().label())
            .help("smaller batches, or a higher limit"));
        }
        let buffer = device.allocate(size)?;
        state.reserved = after;
        state.take(size);
        Ok(buffer)
    }

    /// Takes a buffer back into the cache.
    pub(crate) fn release(&self, buffer: RawBuffer) {
        let mut state = lock(&self.state);
        state.in_use -= buffer.bytes as u64;
        let index = class_index(buffer.bytes);
        if state.free.len() <= index {
            state.free.resize_with(index + 1, Vec::new);
        }
        state.free[index].push(buffer);
    }

    /// Gives the cached buffers back to the device.
    pub(crate) fn empty(&self, device: &dyn Device) {
        let mut state = lock(&self.state);
        let free = std::mem::take(&mut state.free);
        for buffer in free.into_iter().flatten() {
            state.reserved -= buffer.bytes as u64;
            device.free(buffer);
        }
    }

    /// At most this many bytes from the device; `None` for no limit.
    pub(crate) fn set_limit(&self, limit: Option<u64>) {
        lock(&self.state).limit = limit;
    }

    /// What is held, with the device's own word on what is free.
    pub(crate) fn stats(&self, device: &dyn Device) -> MemoryStats {
        let free = device.memory().free;
        let state = lock(&self.state);
        MemoryStats {
            in_use: state.in_use,
            reserved: state.reserved,
            peak: state.peak,
            free,
        }
    }
}

impl State {
    fn take(&mut self, size: usize) {
        self.in_use += size as u64;
        self.peak = self.peak.max(self.in_use);
    }
}

#[cfg(test)]
mod tests {
    use super::{class, class_index};

    #[test]
    fn classes_hold_the_request_and_waste_little() {
        for bytes in [
            0,
            1,
            64,
            65,
            1000,
            1024,
            1025,
            5000,
            1 << 20,
            (1 << 20) + 1,
            123_456_789,
        ] {
            let size = class(bytes);
            assert!(size >= bytes && size.is_multiple_of(64), "{bytes} {size}");
            assert!(size <= bytes.max(512) / 8 * 9 + 64, "{bytes} {size}");
            assert_eq!(class(size), size);
        }
    }

    #[test]
    fn a_place_holds_one_class() {
        let mut seen = std::collections::HashMap::new();
        let sizes = (1..5000).chain((12..62).flat_map(|p| [(1 << p) - 1, 1 << p, (1 << p) + 1]));
        for bytes in sizes {
            let size = class(bytes);
            assert_eq!(*seen.entry(class_index(size)).or_insert(size), size);
        }
    }
}
