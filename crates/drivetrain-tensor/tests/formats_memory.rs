//! Small files that ask for much memory or time get neither. One test, since it measures its whole process.

use drivetrain_cpu as _;
use drivetrain_tensor::formats::{npy, npz, pt, safetensors};
use drivetrain_tensor::{Error, Result};
use std::time::{Duration, Instant};

#[path = "fixtures/hostile.rs"]
mod hostile;

// The most memory that this process has had, in bytes.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes << 10)
}

fn refused<T>(what: &str, read: impl FnOnce() -> Result<T>) {
    let start = Instant::now();
    let error: Error = match read() {
        Ok(_) => panic!("{what} was read"),
        Err(error) => error,
    };
    // A second when alone; the machine that runs the tests may be busy.
    let taken = start.elapsed();
    println!(
        "{what}: {taken:?}, peak {:?} MiB: {error:.120}",
        peak().map(|peak| peak >> 20)
    );
    assert!(taken < Duration::from_secs(5), "{what} took {taken:?}");
    assert!(
        error.to_string().len() < 4000,
        "{what}: a message of {} bytes",
        error.to_string().len()
    );
    if let Some(peak) = peak() {
        assert!(peak < 512 << 20, "{what}: peak of {} MiB", peak >> 20);
    }
}

fn npy_file(shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '<f8', 'fortran_order': True, 'shape': {shape}, }}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), data].concat()
}

// `count` zeros, deflated.
fn zeros(count: usize) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..count >> 16 {
        encoder.write_all(&[0; 1 << 16]).unwrap();
    }
    encoder.finish().unwrap()
}

fn pickle(parts: &[&[u8]]) -> Vec<u8> {
    hostile::zip(&[("a/data.pkl", &parts.concat()), ("a/data/0", &[0; 40])])
}

#[test]
fn memory_and_time_are_bounded_by_the_file() {
    for claimed in [1u64 << 30, 1 << 40, u64::MAX] {
        let file = [&claimed.to_le_bytes()[..], b"{}"].concat();
        refused("a long safetensors header", || {
            safetensors::read_bytes(&file)
        });
    }
    let text = r#"{"a":{"dtype":"F64","shape":[1099511627776],"data_offsets":[0,8796093022208]}}"#;
    let file = [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    refused("a long safetensors tensor", || {
        safetensors::read_bytes(&file)
    });

    let file = npy_file("(1000000, 1000000)", &[0; 100]);
    refused("a long npy array", || npy::read_bytes(&file));
    refused("a long npy array from a reader", || {
        npy::read_from(&file[..])
    });
    let long = [&b"\x93NUMPY\x02\0\xff\xff\xff\xff"[..], &[b' '; 1000]].concat();
    refused("a long npy header", || npy::read_from(&long[..]));

    // 384 MiB in 384 KiB, said and hidden.
    let packed = zeros(384 << 20);
    for claimed in [384 << 20, u32::MAX - 1, 1000] {
        let file = hostile::zip_packed(&[("a.npy", 8, 1, claimed, &packed)]);
        refused("a deflated npz", || npz::read_bytes(&file));
        let file = hostile::zip_packed(&[("a/data.pkl", 8, 1, claimed, &packed)]);
        refused("a deflated pickle", || pt::read_bytes(&file));
    }

    let lists = vec![b']'; 8 << 20];
    refused("eight million lists", || {
        pt::read_bytes(&pickle(&[&lists, b"."]))
    });
    let nested = vec![0x85; 3 << 20];
    refused("tuples in tuples", || {
        pt::read_bytes(&pickle(&[b"N", &nested, b"."]))
    });
    let marks = vec![b'('; 8 << 20];
    refused("eight million marks", || {
        pt::read_bytes(&pickle(&[&marks, b"."]))
    });
    let mut memos = b"N".to_vec();
    for number in 0..5_000_000u32 {
        memos.extend([&b"r"[..], &number.to_le_bytes()].concat());
    }
    refused("five million memos", || {
        pt::read_bytes(&pickle(&[&memos, b"."]))
    });
    let mut laughs = b"]q\x00".to_vec();
    for level in 0..30u8 {
        let ten = [b'h', level].repeat(10);
        laughs.extend([b"](", &ten[..], b"eq", &[level + 1]].concat());
    }
    refused("lists of ten lists, each", || {
        pt::read_bytes(&pickle(&[&laughs, b"."]))
    });
    refused("a dict in itself", || {
        pt::read_bytes(&pickle(&[b"}q\x00K\x01h\x00s."]))
    });
    let view = |sizes: &[u8], strides: &[u8]| {
        let storage = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x0atQK\x00";
        [storage, sizes, strides, b"\x89)tR"].concat()
    };
    let wide = view(b"(J\xff\xff\xff\x7fK\x0at", b"K\x00K\x01\x86");
    refused("a broadcast view", || {
        pt::read_bytes(&pickle(&[&wide, b"."]))
    });
    let modest = view(b"J\x00\x00\x40\x00\x85", b"K\x00\x85").repeat(1000);
    refused("a thousand broadcast views", || {
        pt::read_bytes(&pickle(&[b"](", &modest, b"e."]))
    });
}
