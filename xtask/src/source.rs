//! The repository's text, read once: which files there are, and which bytes of a Rust file are code.

use std::path::Path;

/// Every text file of the repository that a check may look at.
pub struct Tree {
    /// The text files, sorted by path.
    pub files: Vec<File>,
    /// The paths of all files, text or not.
    pub names: Vec<String>,
}

/// One file.
pub struct File {
    /// From the root, with `/`.
    pub path: String,
    /// Its whole text.
    pub text: String,
    /// Rust only: the text with comments and the insides of literals blanked, line breaks kept, byte for byte as long.
    pub code: String,
    /// Rust only: the string literals, as (line from 1, what stands between the quotes, escapes left as written).
    pub literals: Vec<(usize, String)>,
}

const EXTENSIONS: [&str; 11] = [
    "rs", "json", "toml", "md", "py", "sh", "yml", "yaml", "txt", "c", "h",
];

impl Tree {
    /// Reads what is under `root`, build output and hidden folders other than `.ci` and `.cargo` left out.
    pub fn read(root: &Path) -> std::io::Result<Tree> {
        let mut tree = Tree {
            files: Vec::new(),
            names: Vec::new(),
        };
        walk(root, "", &mut tree)?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    /// The Rust files.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The file at `path`, if it is there.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl File {
    /// A file with this text; Rust is lexed.
    pub fn new(path: &str, text: &str) -> File {
        let (code, literals) = if path.ends_with(".rs") {
            lex(text)
        } else {
            (String::new(), Vec::new())
        };
        File {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
            literals,
        }
    }

    /// Whether the whole file is a test, a benchmark or an example.
    pub fn is_test(&self) -> bool {
        let mut parts = self.path.rsplit('/');
        let name = parts.next().unwrap_or_default();
        name == "tests.rs"
            || name.ends_with("_tests.rs")
            || parts.any(|folder| ["tests", "benches", "examples"].contains(&folder))
    }

    /// For each line (from 0) whether it belongs to a `#[cfg(test)]` item.
    pub fn test_lines(&self) -> Vec<bool> {
        let mut marks = vec![self.is_test(); self.code.lines().count()];
        for (start, _) in self.code.match_indices("#[cfg(test)]") {
            let end = item_end(&self.code, start);
            let (first, last) = (line_of(&self.code, start), line_of(&self.code, end));
            for mark in marks.iter_mut().take(last).skip(first - 1) {
                *mark = true;
            }
        }
        marks
    }

    /// Where the identifier `word` stands in code, as byte offsets.
    pub fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        self.code
            .match_indices(word)
            .map(|(at, _)| at)
            .filter(move |&at| {
                !self.code[..at].ends_with(is_part)
                    && !self.code[at + word.len()..].starts_with(is_part)
            })
    }
}

/// The line (from 1) of the byte at `offset`.
pub fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
}

/// The end of the item that starts at `start`: its closing brace, or its semicolon if that comes first.
fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0usize;
    for (offset, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return offset,
            b'}' => depth -= 1,
            b';' if depth == 0 => return offset,
            _ => {}
        }
    }
    code.len()
}

fn walk(root: &Path, below: &str, tree: &mut Tree) -> std::io::Result<()> {
    for entry in std::fs::read_dir(root.join(below))? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = if below.is_empty() {
            name.clone()
        } else {
            format!("{below}/{name}")
        };
        let hidden = name.starts_with('.') && ![".ci", ".cargo"].contains(&name.as_str());
        if hidden || name == "target" || path == "shared" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            walk(root, &path, tree)?;
            continue;
        }
        if EXTENSIONS.contains(&name.rsplit('.').next().unwrap_or_default()) || path == ".ci/run" {
            let text = String::from_utf8_lossy(&std::fs::read(entry.path())?).into_owned();
            tree.files.push(File::new(&path, &text));
        }
        tree.names.push(path);
    }
    Ok(())
}

/// Blanks comments and the insides of literals, and collects the string literals.
fn lex(text: &str) -> (String, Vec<(usize, String)>) {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut literals = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = if bytes[at..].starts_with(b"//") {
            let end = find(bytes, at, b"\n").unwrap_or(bytes.len());
            blank(&mut code, at, end);
            end
        } else if bytes[at..].starts_with(b"/*") {
            let end = block_comment_end(bytes, at);
            blank(&mut code, at, end);
            end
        } else if let Some((inside, close, end)) = string_at(bytes, at) {
            literals.push((line_of(text, at), text[inside..close].to_owned()));
            blank(&mut code, inside, close);
            end
        } else if bytes[at] == b'\'' {
            let end = char_end(text, at);
            blank(&mut code, at + 1, end.saturating_sub(1));
            end
        } else {
            at + 1
        };
        at = end;
    }
    // Only whole literals and comments were blanked, with ASCII, so this is still UTF-8.
    (String::from_utf8_lossy(&code).into_owned(), literals)
}

fn blank(code: &mut [u8], from: usize, to: usize) {
    for byte in code
        .iter_mut()
        .take(to)
        .skip(from)
        .filter(|byte| **byte != b'\n')
    {
        *byte = b' ';
    }
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    bytes[from..]
        .windows(what.len())
        .position(|window| window == what)
        .map(|position| from + position)
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0usize, start);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// A string literal that starts at `at`: where its inside begins and ends, and where it ends itself.
fn string_at(bytes: &[u8], at: usize) -> Option<(usize, usize, usize)> {
    let after_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let mut open = at;
    if !after_word {
        while open < bytes.len() && open < at + 2 && b"bcr".contains(&bytes[open]) {
            open += 1;
        }
    }
    let raw = open > at && bytes[open - 1] == b'r';
    let hashes = if raw {
        bytes[open..]
            .iter()
            .take_while(|&&byte| byte == b'#')
            .count()
    } else {
        0
    };
    if bytes.get(open + hashes) != Some(&b'"') {
        return None;
    }
    let inside = open + hashes + 1;
    if raw {
        let mut closing = vec![b'"'];
        closing.resize(1 + hashes, b'#');
        let close = find(bytes, inside, &closing).unwrap_or(bytes.len());
        return Some((inside, close, (close + closing.len()).min(bytes.len())));
    }
    let mut close = inside;
    while close < bytes.len() && bytes[close] != b'"' {
        close += if bytes[close] == b'\\' { 2 } else { 1 };
    }
    let close = close.min(bytes.len());
    Some((inside, close, (close + 1).min(bytes.len())))
}

/// The end of the character literal at `at`, or just past the quote of a lifetime.
fn char_end(text: &str, at: usize) -> usize {
    let mut characters = text[at + 1..].char_indices();
    match characters.next() {
        Some((_, '\\')) => {
            let closing = text[at + 3..].find('\'').map(|offset| at + 3 + offset + 1);
            closing.unwrap_or(text.len())
        }
        Some(_) => match characters.next() {
            Some((offset, '\'')) => at + 1 + offset + 1,
            _ => at + 1,
        },
        None => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        File::new("a.rs", text).code
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        assert_eq!(code("a // unsafe\nb"), "a          \nb");
        assert_eq!(code("a /* x /* y */ z */ b"), "a                   b");
        assert_eq!(
            code(r#"f("un\"safe", b"x") // "q""#),
            r#"f("        ", b" ")       "#
        );
        assert_eq!(code(r##"f(r#"a"b"#, r"c")"##), r##"f(r#"   "#, r" ")"##);
        assert_eq!(
            code("let a: &'a str = x('\"', '\\'', 'é');"),
            "let a: &'a str = x(' ', '  ', '  ');"
        );
        assert_eq!(code("for_each(x); var\"a\""), "for_each(x); var\" \"");
    }

    #[test]
    fn literals_are_collected_with_their_lines() {
        let file = File::new("a.rs", "f(\"one\");\n// \"two\"\ng(r#\"three\"#, 'x');");
        assert_eq!(
            file.literals,
            [(1, "one".to_owned()), (3, "three".to_owned())]
        );
    }

    #[test]
    fn words_are_whole() {
        let file = File::new("a.rs", "unsafe_code; unsafe { is_unsafe } // unsafe");
        assert_eq!(file.words("unsafe").collect::<Vec<_>>(), [13]);
    }

    #[test]
    fn test_items_are_known() {
        let file = File::new(
            "src/a.rs",
            "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}\n",
        );
        assert_eq!(file.test_lines(), [false, true, true, true, true, false]);
        let file = File::new("src/a.rs", "#[cfg(test)]\nmod tests;\nfn c() {}\n");
        assert_eq!(file.test_lines(), [true, true, false]);
        assert!(File::new("crates/x/tests/a.rs", "").is_test());
        assert!(File::new("crates/x/src/expand_tests.rs", "").is_test());
        assert!(!File::new("crates/x/src/contests.rs", "").is_test());
    }
}
