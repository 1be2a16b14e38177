//! Keep the train, swap the engine: deep learning with the backend chosen at run time.
