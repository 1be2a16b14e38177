//! Tables of numbers from CSV files: columns of features and a column of labels.

use std::path::Path;

use csv::{ReaderBuilder, StringRecord};
use drivetrain_core::{Error, Result};

use crate::dataset::{Dataset, check_index};

/// How to read a CSV file.
///
/// ```no_run
/// use drivetrain_data::{CsvReader, Dataset};
/// let iris = CsvReader::new()
///     .label("species")
///     .class_names(["setosa", "versicolor", "virginica"])
///     .read_classes("iris.csv")?;
/// let (features, class) = iris.get(0)?; // (vec![5.1, 3.5, 1.4, 0.2], 0)
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CsvReader {
    delimiter: u8,
    header: bool,
    features: Vec<Column>,
    label: Option<Column>,
    class_names: Vec<String>,
    fill: Option<f32>,
}

/// A column by its name in the header or by its number from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// By name.
    Name(String),
    /// By number from 0.
    Number(usize),
}

impl From<&str> for Column {
    fn from(name: &str) -> Self {
        Column::Name(name.to_string())
    }
}

impl From<String> for Column {
    fn from(name: String) -> Self {
        Column::Name(name)
    }
}

impl From<usize> for Column {
    fn from(number: usize) -> Self {
        Column::Number(number)
    }
}

impl Default for CsvReader {
    fn default() -> Self {
        CsvReader::new()
    }
}

impl CsvReader {
    /// Commas, a header line, the last column as the label and all others as features.
    pub fn new() -> Self {
        CsvReader {
            delimiter: b',',
            header: true,
            features: Vec::new(),
            label: None,
            class_names: Vec::new(),
            fill: None,
        }
    }

    /// The byte between cells: `b';'`, `b'\t'`.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = delimiter;
        self
    }

    /// Whether the first line holds the names of the columns.
    #[must_use]
    pub fn header(mut self, header: bool) -> Self {
        self.header = header;
        self
    }

    /// The columns of features, in the order wanted.
    #[must_use]
    pub fn features<C: Into<Column>>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        self.features = columns.into_iter().map(Into::into).collect();
        self
    }

    /// The column of labels.
    #[must_use]
    pub fn label(mut self, column: impl Into<Column>) -> Self {
        self.label = Some(column.into());
        self
    }

    /// Labels are these names; their classes are 0, 1, … in this order.
    #[must_use]
    pub fn class_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.class_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Takes this value for empty feature cells, and for `nan`; without it they are errors.
    #[must_use]
    pub fn fill_missing(mut self, value: f32) -> Self {
        self.fill = Some(value);
        self
    }

    /// Reads a file whose labels are classes: integers from 0, or the [`class_names`](Self::class_names).
    ///
    /// A missing or invalid cell gives an error with its line and column.
    pub fn read_classes(&self, path: impl AsRef<Path>) -> Result<CsvDataset<i64>> {
        self.read(path.as_ref(), |cell| match self.class_names.is_empty() {
            true => match cell.parse::<u32>() {
                Ok(class) => Ok(i64::from(class)),
                Err(_) => Err("a class, an integer from 0 (or give class_names)".to_string()),
            },
            false => match self.class_names.iter().position(|name| name == cell) {
                Some(class) => Ok(class as i64),
                None => Err(format!("one of the class names {:?}", self.class_names)),
            },
        })
    }

    /// Reads a file whose labels are numbers (regression).
    ///
    /// A missing or invalid cell gives an error with its line and column.
    pub fn read_values(&self, path: impl AsRef<Path>) -> Result<CsvDataset<f32>> {
        self.read(path.as_ref(), number)
    }

    fn read<L>(
        &self,
        path: &Path,
        parse_label: impl Fn(&str) -> Result<L, String>,
    ) -> Result<CsvDataset<L>> {
        let mut reader = ReaderBuilder::new()
            .delimiter(self.delimiter)
            .has_headers(false)
            // Lines of a wrong length get our error, which names the line.
            .flexible(true)
            .from_path(path)
            .map_err(|cause| broken(path, cause))?;
        let mut record = StringRecord::new();
        let mut names: Option<Vec<String>> = None;
        let mut chosen = (Vec::new(), 0);
        let (mut features, mut labels) = (Vec::new(), Vec::new());
        loop {
            let more = reader.read_record(&mut record);
            if !more.map_err(|cause| broken(path, cause))? {
                break;
            }
            let line = record.position().map_or(0, csv::Position::line);
            let width = match &names {
                Some(names) => names.len(),
                None => {
                    let first = first_names(&record, self.header);
                    chosen = self.choose(path, &first)?;
                    let width = first.len();
                    names = Some(first);
                    if self.header {
                        continue;
                    }
                    width
                }
            };
            if record.len() != width {
                return Err(Error::format(
                    "read CSV",
                    format!(
                        "{}: line {line} has {} cells, expected {width}",
                        path.display(),
                        record.len()
                    ),
                ));
            }
            let place = |column: usize| {
                let name = names.as_ref().and_then(|names| names.get(column));
                format!(
                    "{}: line {line}, column {} ({})",
                    path.display(),
                    column + 1,
                    name.map_or("", String::as_str)
                )
            };
            for &column in &chosen.0 {
                features.push(self.feature(&record, column, &place)?);
            }
            let cell = record.get(chosen.1).unwrap_or("").trim();
            let label =
                parse_label(cell).map_err(|expected| fault(place(chosen.1), cell, expected));
            labels.push(label?);
        }
        let Some(names) = names else {
            return Err(Error::format(
                "read CSV",
                format!(
                    "{}: line 1: expected a line of cells, found the end",
                    path.display()
                ),
            ));
        };
        Ok(CsvDataset {
            columns: chosen.0.iter().map(|&c| names[c].clone()).collect(),
            features,
            labels,
        })
    }

    fn feature(
        &self,
        record: &StringRecord,
        column: usize,
        place: &dyn Fn(usize) -> String,
    ) -> Result<f32> {
        let cell = record.get(column).unwrap_or("").trim();
        match self.fill {
            Some(value) if cell.is_empty() || cell.eq_ignore_ascii_case("nan") => Ok(value),
            _ => number(cell).map_err(|expected| fault(place(column), cell, expected)),
        }
    }

    /// Numbers of the feature columns and of the label column.
    fn choose(&self, path: &Path, names: &[String]) -> Result<(Vec<usize>, usize)> {
        let find = |column: &Column| {
            let found = match column {
                Column::Number(number) => (*number < names.len()).then_some(*number),
                Column::Name(name) => names.iter().position(|n| n == name),
            };
            found.ok_or_else(|| {
                Error::argument(
                    "read CSV",
                    format!(
                        "{}: no column {column:?}; the columns are {names:?}",
                        path.display()
                    ),
                )
            })
        };
        let label = match &self.label {
            Some(column) => find(column)?,
            None => names.len().saturating_sub(1),
        };
        let features = match self.features.is_empty() {
            true => (0..names.len()).filter(|&c| c != label).collect::<Vec<_>>(),
            false => self.features.iter().map(find).collect::<Result<_>>()?,
        };
        if features.is_empty() {
            return Err(Error::argument(
                "read CSV",
                format!(
                    "{}: no column is left for features; the columns are {names:?}",
                    path.display()
                ),
            )
            .help("is the delimiter right?"));
        }
        Ok((features, label))
    }
}

/// The names of the header, or the numbers of the columns.
fn first_names(record: &StringRecord, header: bool) -> Vec<String> {
    match header {
        // A byte order mark is no part of a name.
        true => record
            .iter()
            .map(|cell| cell.trim_start_matches('\u{FEFF}').trim().to_string())
            .collect(),
        false => (0..record.len()).map(|column| column.to_string()).collect(),
    }
}

fn number(cell: &str) -> Result<f32, String> {
    match cell.parse::<f32>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err("a finite number".to_string()),
    }
}

#[track_caller]
fn fault(place: String, cell: &str, expected: String) -> Error {
    let found = match cell {
        "" => "an empty cell".to_string(),
        cell => format!("{cell:?}"),
    };
    Error::format(
        "read CSV",
        format!("{place}: expected {expected}, found {found}"),
    )
}

fn broken(path: &Path, cause: csv::Error) -> Error {
    let message = format!("{}: {cause}", path.display());
    match cause.into_kind() {
        csv::ErrorKind::Io(cause) => Error::io("read CSV", path.display(), cause),
        _ => Error::format("read CSV", message),
    }
}

/// Rows of a CSV file: items are the features and the label. Batches are tensors [N, features] F32 and \[N\].
#[derive(Clone, Debug)]
pub struct CsvDataset<L> {
    columns: Vec<String>,
    features: Vec<f32>,
    labels: Vec<L>,
}

impl<L> CsvDataset<L> {
    /// Names of the feature columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// All features, [rows, columns].
    pub fn features(&self) -> &[f32] {
        &self.features
    }

    /// All labels.
    pub fn labels(&self) -> &[L] {
        &self.labels
    }
}

impl<L: Clone + Send + Sync + 'static> Dataset for CsvDataset<L> {
    type Item = (Vec<f32>, L);

    fn len(&self) -> usize {
        self.labels.len()
    }

    fn get(&self, index: usize) -> Result<(Vec<f32>, L)> {
        check_index("CsvDataset::get", index, self.labels.len())?;
        let width = self.columns.len();
        let row = self.features[index * width..(index + 1) * width].to_vec();
        Ok((row, self.labels[index].clone()))
    }
}
