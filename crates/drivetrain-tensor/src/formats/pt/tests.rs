//! Pickles that PyTorch would never write.

use super::*;
use drivetrain_core::ErrorKind;

#[path = "../../../tests/fixtures/hostile.rs"]
mod hostile;

fn archive(pickle: &[u8], others: &[(&str, &[u8])]) -> Vec<u8> {
    let named = others
        .iter()
        .map(|(name, content)| (format!("archive/{name}"), *content));
    let named: Vec<_> = named.collect();
    let mut members = vec![("archive/data.pkl", pickle)];
    members.extend(
        named
            .iter()
            .map(|(name, content)| (name.as_str(), *content)),
    );
    hostile::zip(&members)
}

fn refusal(pickle: &[u8]) -> String {
    let error = read_bytes(&archive(pickle, &[("data/0", &[0; 40])])).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Format | ErrorKind::DType),
        "{error:?}"
    );
    error.to_string()
}

fn text(value: &str) -> Vec<u8> {
    let mut bytes = b"X".to_vec();
    bytes.extend((value.len() as u32).to_le_bytes());
    bytes.extend(value.as_bytes());
    bytes
}

fn integer(value: i64) -> Vec<u8> {
    [&[0x8a, 8], &value.to_le_bytes()[..]].concat()
}

fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
    [b"(".to_vec(), items.concat(), b"t".to_vec()].concat()
}

fn integers(values: &[i64]) -> Vec<u8> {
    tuple(
        &values
            .iter()
            .map(|&value| integer(value))
            .collect::<Vec<_>>(),
    )
}

// A tensor of storage `0`, which the archive of `refusal` gives 40 bytes.
fn tensor(class: &str, count: i64, offset: i64, sizes: &[i64], strides: &[i64]) -> Vec<u8> {
    let class = format!("ctorch\n{class}\n").into_bytes();
    let storage = tuple(&[
        text("storage"),
        class,
        text("0"),
        text("cpu"),
        integer(count),
    ]);
    let arguments = tuple(&[
        [storage, b"Q".to_vec()].concat(),
        integer(offset),
        integers(sizes),
        integers(strides),
    ]);
    [
        b"ctorch._utils\n_rebuild_tensor_v2\n".to_vec(),
        arguments,
        b"R".to_vec(),
    ]
    .concat()
}

fn stop(parts: &[&[u8]]) -> Vec<u8> {
    [parts.concat(), b".".to_vec()].concat()
}

fn dict(name: &str, value: Vec<u8>) -> Vec<u8> {
    stop(&[b"}", &text(name), &value, b"s"])
}

#[test]
fn names_that_weights_do_not_need_are_refused_and_not_run() {
    let mut pickle = b"\x80\x02cos\nsystem\n".to_vec();
    pickle.extend(tuple(&[text("echo hello")]));
    pickle.extend(b"R.");
    let message = refusal(&pickle);
    assert!(
        message.contains("`os.system`") && message.contains("byte 2"),
        "{message}"
    );
    let by_stack = stop(&[&text("builtins"), &text("eval"), b"\x93"]);
    assert!(refusal(&by_stack).contains("`builtins.eval`"));
}

#[test]
fn cycles_are_refused() {
    let own = stop(&[b"}q\x00", &text("a"), b"h\x00s"]);
    assert!(
        refusal(&own).contains("`a` contains itself"),
        "{}",
        refusal(&own)
    );
    let list = stop(&[b"]q\x00]q\x01h\x00ah\x01a"]);
    assert!(refusal(&list).contains("contains itself"));
    // A tuple inside the list that it holds, as a size of its own tensor and as its own key.
    let tuple_in_list = stop(&[b"]q\x00(h\x00tq\x01a"]);
    assert!(refusal(&tuple_in_list).contains("contains itself"));
    let key = stop(&[b"}q\x00h\x00h\x00s"]);
    assert!(refusal(&key).contains("contains itself"));
}

#[test]
fn deep_nesting_is_refused() {
    let deep = [vec![b']'; 1_000_000], vec![b'a'; 999_999], b".".to_vec()].concat();
    assert!(refusal(&deep).contains("nested deeper"));
    let tuples = [b")".to_vec(), vec![0x85; 1_000_000], b".".to_vec()].concat();
    assert!(refusal(&tuples).contains("nested deeper"));
    let marks = [vec![b'('; 5_000_000], b".".to_vec()].concat();
    assert!(refusal(&marks).contains("our limit"));
}

#[test]
fn small_pickles_that_expand_without_end_are_refused() {
    // Thirty lists, each of ten times the one before.
    let mut pickle = b"]q\x00".to_vec();
    for level in 0..30u8 {
        pickle.extend(b"](");
        for _ in 0..10 {
            pickle.extend([b'h', level]);
        }
        pickle.extend([b'e', b'q', level + 1]);
    }
    pickle.push(b'.');
    assert!(
        refusal(&pickle).contains("expand to far more"),
        "{}",
        refusal(&pickle)
    );
    // One long list of pairs, made a dict of again and again.
    let pairs = b"NN\x86".repeat(100_000);
    let again = b"ccollections\nOrderedDict\nh\x00\x85R0".repeat(10_000);
    let pickle = stop(&[b"](", &pairs, b"eq\x00", &again]);
    assert!(refusal(&pickle).contains("our limit"));
    // Names that grow with each level, for each of many entries.
    let long = "n".repeat(1 << 20);
    let mut pickle = b"}(".to_vec();
    for _ in 0..40 {
        pickle.extend(
            [
                &text(&long),
                &b"}"[..],
                &text("a"),
                b"}",
                &text("b"),
                b"Nss",
            ]
            .concat(),
        );
    }
    pickle.extend(b"u.");
    assert!(read_bytes(&archive(&pickle, &[])).is_ok());
    let key = [&text(&long)[..], b"q\x000"].concat();
    let mut pickle = [&key[..], b"}("].concat();
    for _ in 0..100_000 {
        pickle.extend(b"h\x00N");
    }
    pickle.extend(b"u.");
    assert!(refusal(&pickle).contains("expand to far more"));
}

#[test]
fn lengths_past_the_end_are_refused() {
    for pickle in [
        &b"X\xff\xff\xff\xffabc"[..],
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x96\x00\x00\x00\x00\x01\x00\x00\x00",
        b"\x8b\xff\xff\xff\x7f",
        b"B\x00\x00\x00\x80",
        b"\x8a\xff1",
        b"ctorch",
        b"",
    ] {
        refusal(pickle);
    }
    let pickle = stop(&[b"Nr\x00\x09\x3d\x000j\x00\x09\x3d\x00"]);
    let read = read_bytes(&archive(&pickle, &[])).unwrap();
    assert_eq!(read.skipped, [(String::new(), "None".to_owned())]);
    assert!(refusal(b"Nr\xff\xff\xff\xff.").contains("memo 4294967295, over our limit"));
    assert!(refusal(b"Nq\x060h\x05.").contains("nothing has the memo 5"));
    assert!(refusal(b"h\x05.").contains("memo 5"));
}

#[test]
fn views_must_stay_in_their_storage() {
    type Case<'a> = (&'a str, i64, i64, &'a [i64], &'a [i64], &'a str);
    let cases: [Case; 11] = [
        (
            "FloatStorage",
            10,
            8,
            &[3],
            &[1],
            "reaches past its storage of 10",
        ),
        ("FloatStorage", 10, 10, &[], &[], "reaches past"),
        ("FloatStorage", 10, 0, &[3, 4], &[4, 1], "reaches past"),
        ("FloatStorage", 11, 0, &[1], &[1], "44 bytes"),
        ("FloatStorage", i64::MAX, 0, &[1], &[1], "storage `0`"),
        ("FloatStorage", 10, 0, &[3], &[-1], "int -1"),
        ("FloatStorage", 10, -1, &[1], &[1], "int -1"),
        (
            "FloatStorage",
            10,
            0,
            &[2, 2],
            &[1],
            "2 sizes and 1 strides",
        ),
        ("FloatStorage", 10, 0, &[1; 9], &[1; 9], "at most 8"),
        (
            "FloatStorage",
            10,
            0,
            &[1 << 40, 1 << 40],
            &[0, 0],
            "1099511627776",
        ),
        (
            "FloatStorage",
            10,
            i64::MAX,
            &[2],
            &[i64::MAX],
            "reaches past",
        ),
    ];
    for (class, count, offset, sizes, strides, part) in cases {
        let message = refusal(&dict("w", tensor(class, count, offset, sizes, strides)));
        assert!(
            message.contains(part) && message.contains("`w`"),
            "{message}"
        );
    }
    let whole = dict("w", tensor("FloatStorage", 10, 1, &[2, 3], &[0, 3]));
    let data: Vec<u8> = (0..10).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let read = read_bytes(&archive(&whole, &[("data/0", &data)])).unwrap();
    let expected = [1f32, 4.0, 7.0, 1.0, 4.0, 7.0];
    assert_eq!(read.get("w").unwrap().to_vec::<f32>().unwrap(), expected);
    let error = read_bytes(&archive(&whole, &[])).unwrap_err().to_string();
    assert!(
        error.contains("`w`") && error.contains("not in the file"),
        "{error}"
    );
}

#[test]
fn broadcast_views_are_bounded_by_the_file() {
    let huge = dict("w", tensor("FloatStorage", 10, 0, &[1 << 30, 10], &[0, 1]));
    let message = refusal(&huge);
    assert!(
        message.contains("42949673000") && message.contains("limit"),
        "{message}"
    );
    // Many modest ones count together.
    let modest = tensor("FloatStorage", 10, 0, &[1 << 20], &[0]);
    let mut pickle = b"](".to_vec();
    for _ in 0..100 {
        pickle.extend(&modest);
    }
    pickle.extend(b"e.");
    assert!(refusal(&pickle).contains("limit"));
}

#[test]
fn other_bad_entries_are_refused_by_name() {
    let complex = dict("z", tensor("ComplexFloatStorage", 5, 0, &[1], &[1]));
    let message = refusal(&complex);
    assert!(
        message.contains("`z`") && message.contains("ComplexFloat"),
        "{message}"
    );
    let untyped = dict("u", tensor("UntypedStorage", 5, 0, &[1], &[1]));
    assert!(refusal(&untyped).contains("`u`"));
    let rebuild = b"ctorch._utils\n_rebuild_tensor_v2\n";
    for arguments in [
        tuple(&[]),
        tuple(&[integer(1), integer(0), integers(&[]), integers(&[])]),
        tuple(&[b"NQ".to_vec(), integer(0), integers(&[]), integers(&[])]),
        tuple(&[b")Q".to_vec(), integer(0), integers(&[]), integers(&[])]),
    ] {
        refusal(&stop(&[b"}", &text("t"), rebuild, &arguments, b"Rs"]));
    }
    let one = tensor("FloatStorage", 10, 0, &[1], &[1]);
    let twice = stop(&[b"}(", &text("w"), &one, &text("w"), &one, b"u"]);
    assert!(refusal(&twice).contains("two entries are named `w`"));
    let dotted = stop(&[
        b"}(",
        &text("a.b"),
        &one,
        &text("a"),
        b"}",
        &text("b"),
        &one,
        b"su",
    ]);
    assert!(refusal(&dotted).contains("two entries are named `a.b`"));
}

#[test]
fn every_opcode_alone_is_survived() {
    for first in 0..=255u8 {
        for second in 0..=255u8 {
            let _ = read_bytes(&archive(&[first, second, b'.'], &[]));
            let _ = read_bytes(&archive(&[b'(', b'N', first, second, b'.'], &[]));
        }
    }
}

// The fixtures' own pickles, cut short and damaged, in archives whose checksums are right.
#[test]
fn every_prefix_and_thousands_of_mutations_are_survived() {
    for name in [
        "strided.pt",
        "dtypes.pt",
        "checkpoint.pt",
        "protocol4.pt",
        "sparse.pt",
    ] {
        let bytes = hostile::fixture(name);
        let place = Place::memory("test");
        let mut source = Archive::open(&place, Cursor::new(&bytes), bytes.len() as u64).unwrap();
        let mut pickle = Vec::new();
        let mut others = Vec::new();
        for member in source.members.clone() {
            let content = source.read(&member).unwrap();
            match member.name.split_once('/').unwrap().1 {
                "data.pkl" => pickle = content,
                other => others.push((other.to_owned(), content)),
            }
        }
        let others: Vec<(&str, &[u8])> = others
            .iter()
            .map(|(name, content)| (name.as_str(), content.as_slice()))
            .collect();
        let read = |pickle: &[u8]| read_bytes(&archive(pickle, &others));
        hostile::every_prefix_is_refused(&pickle, read);
        assert!(hostile::mutations(&pickle, 3000, read) > 1000, "{name}");
    }
}

#[test]
fn big_endian_storages_are_swapped() {
    let pickle = dict("w", tensor("ShortStorage", 2, 0, &[2], &[1]));
    let members: &[(&str, &[u8])] = &[("byteorder", b"big"), ("data/0", &[0, 1, 0xff, 0xfe])];
    let read = read_bytes(&archive(&pickle, members)).unwrap();
    assert_eq!(read.get("w").unwrap().to_vec::<i32>().unwrap(), [1, -2]);
    let error = read_bytes(&archive(&pickle, &[("byteorder", b"middle")])).unwrap_err();
    assert!(error.to_string().contains("middle"), "{error}");
}

#[test]
fn other_archives_are_told_apart() {
    let error = read_bytes(&archive(b"N.", &[("constants.pkl", b"")])).unwrap_err();
    assert!(error.to_string().contains("TorchScript"), "{error}");
    let error = read_bytes(&hostile::fixture("stored.npz")).unwrap_err();
    assert!(error.to_string().contains("data.pkl"), "{error}");
    let error = read_bytes(b"\x80\x02}q\x00.").unwrap_err();
    assert!(
        error.to_string().contains("expected a zip archive"),
        "{error}"
    );
    assert!(read_bytes(b"").is_err());
}
