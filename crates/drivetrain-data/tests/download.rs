//! Downloads from a server of our own that misbehaves: wrong content, broken connections, no ranges.
#![cfg(feature = "download")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use drivetrain_data::{Mnist, RemoteFile};
use sha2::{Digest, Sha256};

/// The folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("drivetrain-download-{}-{count}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.0)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What was asked for: the path, and where the range starts.
#[derive(Clone, Debug, PartialEq)]
struct Asked(String, Option<usize>);

struct Server {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// Answers each connection's one request by `answer(number of the request, what is asked, stream)`.
fn serve(answer: impl Fn(usize, &Asked, &mut TcpStream) + Send + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            // A TLS greeting is no line of text.
            let Some(Ok(first)) = lines.next() else {
                continue;
            };
            let path = first.split(' ').nth(1).unwrap_or("").to_string();
            let mut start = None;
            for line in lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
            {
                if let Some(range) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
                    start = range.trim_end_matches('-').parse().ok();
                }
            }
            let request = Asked(path, start);
            log.lock().unwrap().push(request.clone());
            answer(number, &request, &mut stream);
        }
    });
    Server { address, asked }
}

/// A right answer to a request with or without a range.
fn send(asked: &Asked, stream: &mut TcpStream, content: &[u8]) {
    let start = asked.1.unwrap_or(0);
    let head = match asked.1 {
        None => format!("200 OK\r\nContent-Length: {}", content.len()),
        Some(_) => format!(
            "206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {start}-{}/{}",
            content.len() - start,
            content.len() - 1,
            content.len()
        ),
    };
    let _ = write!(stream, "HTTP/1.1 {head}\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(&content[start..]);
}

/// A right beginning, cut off after `sent` bytes of the body.
fn send_and_break(asked: &Asked, stream: &mut TcpStream, content: &[u8], sent: usize) {
    let start = asked.1.unwrap_or(0);
    let length = content.len() - start;
    let head = match asked.1 {
        None => format!("200 OK\r\nContent-Length: {length}"),
        Some(_) => format!(
            "206 Partial Content\r\nContent-Length: {length}\r\nContent-Range: bytes {start}-"
        ),
    };
    let _ = write!(stream, "HTTP/1.1 {head}\r\n\r\n");
    let _ = stream.write_all(&content[start..start + sent]);
}

fn content() -> Vec<u8> {
    (0..100_000u32).map(|i| (i % 251 * 7 % 256) as u8).collect()
}

fn remote(mirrors: &[&Server]) -> RemoteFile {
    let digest = Sha256::digest(content());
    RemoteFile {
        name: "file.bin".to_string(),
        mirrors: mirrors
            .iter()
            .map(|server| server.address.clone())
            .collect(),
        bytes: 100_000,
        sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

#[test]
fn a_file_comes_once_and_is_not_asked_for_again() {
    let folder = Folder::new();
    let server = serve(|_, asked, stream| send(asked, stream, &content()));
    let file = remote(&[&server]);
    let path = file.fetch(folder.0.join("deep")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), content());
    file.fetch(folder.0.join("deep")).unwrap();
    assert_eq!(
        *server.asked.lock().unwrap(),
        [Asked("/file.bin".to_string(), None)]
    );
    // Spoiled later: replaced.
    fs::write(&path, vec![0; 100_000]).unwrap();
    file.fetch(folder.0.join("deep")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), content());
}

#[test]
fn broken_connections_are_continued_where_they_broke() {
    let folder = Folder::new();
    let server = serve(|number, asked, stream| match number {
        0 => send_and_break(asked, stream, &content(), 30_000),
        1 => send_and_break(asked, stream, &content(), 20_000),
        _ => send(asked, stream, &content()),
    });
    let path = remote(&[&server]).fetch(&folder.0).unwrap();
    assert_eq!(fs::read(path).unwrap(), content());
    let starts: Vec<_> = server.asked.lock().unwrap().iter().map(|a| a.1).collect();
    assert_eq!(starts, [None, Some(30_000), Some(50_000)]);
    assert_eq!(folder.names(), ["file.bin"]);
}

#[test]
fn a_later_call_continues_what_is_kept() {
    let folder = Folder::new();
    let broken = serve(|number, asked, stream| {
        if number == 0 {
            send_and_break(asked, stream, &content(), 40_000);
        }
    });
    let message = remote(&[&broken]).fetch(&folder.0).unwrap_err().to_string();
    assert!(
        message.contains("file.bin") && message.contains(&broken.address),
        "{message}"
    );
    assert_eq!(folder.names(), ["file.bin.part"]);
    let server = serve(|_, asked, stream| send(asked, stream, &content()));
    remote(&[&server]).fetch(&folder.0).unwrap();
    assert_eq!(server.asked.lock().unwrap()[0].1, Some(40_000));
    assert_eq!(folder.names(), ["file.bin"]);
}

#[test]
fn a_server_without_ranges_starts_over() {
    let folder = Folder::new();
    let server = serve(|number, asked, stream| match number {
        0 => send_and_break(asked, stream, &content(), 30_000),
        _ => send(&Asked(String::new(), None), stream, &content()),
    });
    let path = remote(&[&server]).fetch(&folder.0).unwrap();
    assert_eq!(fs::read(path).unwrap(), content());
}

#[test]
fn wrong_content_is_refused_and_the_next_mirror_asked() {
    let folder = Folder::new();
    let wrong = || {
        serve(|_, asked, stream| {
            let mut content = content();
            content[77] ^= 1;
            send(asked, stream, &content);
        })
    };
    let first = wrong();
    let message = remote(&[&first]).fetch(&folder.0).unwrap_err().to_string();
    assert!(
        message.contains("SHA-256 is") && message.contains("expected"),
        "{message}"
    );
    assert_eq!(folder.names(), Vec::<String>::new());

    let good = serve(|_, asked, stream| send(asked, stream, &content()));
    let path = remote(&[&wrong(), &good]).fetch(&folder.0).unwrap();
    assert_eq!(fs::read(path).unwrap(), content());
}

#[test]
fn a_kept_part_of_something_else_is_thrown_away() {
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let server = serve(|_, asked, stream| send(asked, stream, &content()));
    for part in [vec![9; 500], vec![9; 100_000], vec![9; 200_000]] {
        fs::write(folder.0.join("file.bin.part"), part).unwrap();
        let path = remote(&[&server]).fetch(&folder.0).unwrap();
        assert_eq!(fs::read(&path).unwrap(), content());
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn refusals_pages_and_endless_bodies_lead_to_the_next_mirror() {
    let folder = Folder::new();
    let answer = |head: &'static str, body: &'static [u8]| {
        serve(move |_, _, stream| {
            let _ = write!(stream, "HTTP/1.1 {head}\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(body);
        })
    };
    let missing = answer("404 Not Found\r\nContent-Length: 0", b"");
    let page = answer("200 OK\r\nContent-Length: 6", b"<html>");
    let endless = serve(|_, _, stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        while stream.write_all(&[7; 4096]).is_ok() {}
    });
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        Server {
            address,
            asked: Arc::default(),
        }
    };
    let bad = [&missing, &page, &endless, &closed];
    let message = remote(&bad).fetch(&folder.0).unwrap_err().to_string();
    for part in [
        "404",
        "announces 6 bytes, expected 100000",
        "more than 100000",
        "4 mirrors",
    ] {
        assert!(message.contains(part), "{message}");
    }
    for server in bad {
        assert!(message.contains(&server.address), "{message}");
    }
    let good = serve(|_, asked, stream| send(asked, stream, &content()));
    let path = remote(&[&missing, &page, &endless, &closed, &good])
        .fetch(&folder.0)
        .unwrap();
    assert_eq!(fs::read(path).unwrap(), content());
}

#[test]
fn a_server_without_a_certificate_is_refused() {
    let folder = Folder::new();
    let server = serve(|_, asked, stream| send(asked, stream, &content()));
    let mut file = remote(&[&server]);
    file.mirrors[0] = server.address.replace("http:", "https:");
    let message = file.fetch(&folder.0).unwrap_err().to_string();
    assert!(message.contains("https://127.0.0.1"), "{message}");
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn a_name_does_not_lead_elsewhere() {
    let folder = Folder::new();
    for name in ["../file.bin", "", "a/b"] {
        let mut file = remote(&[]);
        file.name = name.to_string();
        let message = file.fetch(&folder.0).unwrap_err().to_string();
        assert!(message.contains("no plain file name"), "{message}");
    }
}

#[test]
fn mnist_asks_for_its_files_and_takes_no_others() {
    let folder = Folder::new();
    let server = serve(|_, asked, stream| send(asked, stream, b"not MNIST"));
    let message = Mnist::download_from(&folder.0, &[&server.address])
        .unwrap_err()
        .to_string();
    assert!(message.contains("expected 9912422"), "{message}");
    let asked = Asked("/train-images-idx3-ubyte.gz".to_string(), None);
    assert_eq!(*server.asked.lock().unwrap(), [asked]);
}
