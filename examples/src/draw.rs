//! Grey pictures as characters.

const SHADES: &[u8] = b" .:-=+*#%@";

/// Pictures side by side, two rows of pixels to a line of text, with a caption under each.
///
/// A picture is `side` rows of `side` bytes, 0 for paper and 255 for ink; `margin` pixels are left out on each edge.
/// One that is not as large as that is drawn as if paper went on.
pub fn side_by_side(pictures: &[(&[u8], String)], side: usize, margin: usize) -> String {
    let shown = margin..side.saturating_sub(margin);
    let mut lines = Vec::new();
    for row in shown.clone().step_by(2) {
        let line = pictures.iter().map(|(pixels, _)| {
            let ink = |row: usize, column: usize| -> usize {
                let pixel = pixels.get(row * side + column);
                pixel.map_or(0, |&ink| usize::from(ink))
            };
            let shade = |column| {
                let mean = (ink(row, column) + ink(row + 1, column)) / 2;
                char::from(SHADES[mean * (SHADES.len() - 1) / 255])
            };
            shown.clone().map(shade).collect::<String>()
        });
        lines.push(line.collect::<Vec<_>>().join("  ").trim_end().to_string());
    }
    let captions = pictures
        .iter()
        .map(|(_, caption)| format!("{caption:^width$}", width = shown.len()));
    lines.push(
        captions
            .collect::<Vec<_>>()
            .join("  ")
            .trim_end()
            .to_string(),
    );
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ink_becomes_shades() {
        let picture: Vec<u8> = [
            [255, 0, 0, 0],
            [255, 0, 0, 0],
            [0, 0, 128, 255],
            [0, 0, 0, 255],
        ]
        .concat();
        let text = side_by_side(
            &[(&picture, "one".to_string()), (&picture, "two".to_string())],
            4,
            0,
        );
        assert_eq!(text, "@     @\n  :@    :@\none   two");
    }

    #[test]
    fn odd_and_short_pictures_are_drawn_too() {
        assert_eq!(side_by_side(&[(&[255], String::new())], 3, 0), "=\n\n");
        assert_eq!(side_by_side(&[], 28, 4).lines().count(), 10);
    }
}
