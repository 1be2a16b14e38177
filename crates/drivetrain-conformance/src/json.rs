//! JSON as Python writes it: bare `NaN`, `Infinity` and `-Infinity` are read as the texts `"nan"`, `"inf"`, `"-inf"`.

use drivetrain_core::{Error, Result};
use serde_json::Value;

/// The document in `text`.
///
/// # Errors
/// Text that is no JSON; names `file`, line and column.
pub fn parse(file: &str, text: &str) -> Result<Value> {
    serde_json::from_str(&quote_special_numbers(text))
        .map_err(|error| Error::format("conformance", format!("{file}: {error}")))
}

/// Quotes the numbers that JSON does not have, outside of texts.
fn quote_special_numbers(text: &str) -> String {
    const NAMES: [(&str, &str); 3] = [
        ("-Infinity", "\"-inf\""),
        ("Infinity", "\"inf\""),
        ("NaN", "\"nan\""),
    ];
    let mut quoted = String::with_capacity(text.len());
    let mut rest = text;
    let mut inside = false;
    while let Some(character) = rest.chars().next() {
        let special = NAMES
            .iter()
            .find(|(name, _)| !inside && rest.starts_with(name));
        let taken = match special {
            Some((name, replacement)) => {
                quoted.push_str(replacement);
                name.len()
            }
            None if inside && character == '\\' => {
                let escaped: String = rest.chars().take(2).collect();
                quoted.push_str(&escaped);
                escaped.len()
            }
            None => {
                inside ^= character == '"';
                quoted.push(character);
                character.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_numbers_become_texts_and_texts_stay() {
        let value = parse(
            "t",
            r#"{"a": [NaN, -Infinity, Infinity], "b": "NaN \" NaN"}"#,
        )
        .unwrap();
        assert_eq!(value["a"], serde_json::json!(["nan", "-inf", "inf"]));
        assert_eq!(value["b"], "NaN \" NaN");
    }

    #[test]
    fn bad_text_names_the_file_and_the_place() {
        let error = parse("cases.json", "{\n1").unwrap_err().to_string();
        assert!(
            error.contains("cases.json") && error.contains("line 2"),
            "{error}"
        );
    }
}
