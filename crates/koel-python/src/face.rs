//! What filters, counting filters and maplets have in common, written once.
//!
//! [`face!`] gives a Python class its lookups, sizes and copies, and through `file.rs` its files. A
//! class has two fields: the body behind a lock, and how keys are hashed, which never changes, so
//! that keys are hashed without the lock. tests/test_docs.py runs the examples in the
//! documentation.

/// A row of the table that Jupyter shows.
pub(crate) fn html_row(name: &str, value: &str) -> String {
    format!("<tr><th style=\"text-align:left\">{name}</th><td>{value}</td></tr>")
}

/// A rate, 0 to 1, as per cent.
pub(crate) fn rate(rate: f64) -> String {
    if rate == 0.0 || rate >= 1e-5 {
        format!("{:.3} %", 100.0 * rate)
    } else {
        format!("{rate:.2e}")
    }
}

/// 1234567 as 1,234,567.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Implements what every class has.
///
/// * `$Face`, `$Mapped`: the class, and the view of a file that it may hold.
/// * `$name`, `$new`: its name, and an example of a call that makes one.
/// * `$add`: an example of a call that adds the key `"ada"`.
macro_rules! face {
    ($Face:ident, $Mapped:ident, $name:literal, $new:literal, $add:literal) => {
        /// What a thread works on.
        type Contents = $crate::body::Body<koel::$Face, $Mapped>;

        impl $Face {
            fn hold(contents: Contents) -> Self {
                let hashing = $crate::body::with_filter!(&contents, filter => {
                    Hashing::new(filter.hasher(), filter.application())
                });
                Self { contents: Arc::new(Shared::new(contents)), hashing }
            }

            pub(crate) fn own(filter: koel::$Face) -> Self {
                Self::hold(Contents::Owned(filter))
            }

            fn with_width(&self, width: u32) -> PyResult<Hashing> {
                Ok(Hashing { width: Width::of(width)?, ..self.hashing })
            }

            /// A copy that can be changed.
            fn copied(&self, py: Python<'_>) -> PyResult<koel::$Face> {
                self.contents.read_detached(py, |contents| match contents {
                    Contents::Owned(filter) => filter.try_clone().or_raise(),
                    Contents::Mapped(mapped) => {
                        mapped.with_dependent(|_, view| view.to_owned()).or_raise()
                    }
                })
            }
        }

        #[pymethods]
        impl $Face {
            fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                let hash = self.hashing.hash(key)?;
                Ok(self.contents.read(key.py(), |contents| {
                    with_filter!(contents, filter => filter.contains(&hash))
                }))
            }

            #[doc = concat!(
                "Whether each of many keys is in.\n\n",
                "Takes any iterable, numpy array, Arrow array, pandas or polars Series. Returns\n",
                "an array of bool in the shape of the keys: numpy, or Arrow where the keys are\n",
                "Arrow. A missing key (null) of Arrow gives null, and one of pandas a\n",
                "TypeError. `width` is the number of bits of integers as keys: 64, or 8, 16 or\n",
                "32 as other programs may have them.\n\n",
                "Raises TypeError for what is not a key.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n    >>> ", $add, "\n",
                "    >>> f.contains_many(['ada', 'mary'])\n",
                "    array([ True, False])\n",
            )]
            #[pyo3(signature = (keys, *, width=64))]
            fn contains_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                width: u32,
            ) -> PyResult<Bound<'py, PyAny>> {
                let work = self.contents.lookup(|contents, chunk, found: &mut [bool]| {
                    with_filter!(contents, filter => with_keys!(chunk, keys => {
                        filter.contains_many(keys, found);
                    }));
                });
                $crate::many::answers(keys, self.with_width(width)?, work)
            }

            #[doc = concat!(
                "Whether the host of a URL, or one of its parent domains, is in.\n\n",
                "Where keys are not hosts, the text is also looked up as it is: what `koel check\n",
                "--url` asks. Each of these lookups may be a false positive.\n\n",
                "Raises ValueError for a text without a host that is not in as it is.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n    >>> ", $add, "\n",
                "    >>> f.contains_url('https://example.org/ada')\n",
                "    False\n",
            )]
            fn contains_url(&self, py: Python<'_>, url: &str) -> PyResult<bool> {
                let form = self.hashing.form()?;
                let found = self.contents.read(py, |contents| {
                    form.finds_url(url.as_bytes(), |key| {
                        with_filter!(contents, filter => filter.contains(key))
                    })
                });
                found.map_err($crate::key::no_host)
            }

            #[doc = concat!(
                "The options of `koel build` without which a text is another key.\n\n",
                "Empty if a key is the text itself. A `str` or `bytes` becomes a key with them, so\n",
                "of a filter of hosts ask for a host or a URL. None if this version does not know\n",
                "them.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.line_options\n",
                "    ''\n",
            )]
            #[getter]
            fn line_options(&self) -> Option<String> {
                self.hashing.form().ok().map(koel_lines::KeyForm::words)
            }

            /// The number of keys that were added and not removed, counting each time.
            fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
                let len = self.contents.read(py, |contents| {
                    with_filter!(contents, filter => filter.len())
                });
                let most = isize::MAX.cast_unsigned();
                usize::try_from(len).ok().filter(|&len| len <= most).ok_or_else(|| {
                    let message = format!("{len} keys are more than a len() of Python can be");
                    pyo3::exceptions::PyOverflowError::new_err(message)
                })
            }

            /// The memory that it takes, for `sys.getsizeof`. A mapped file takes none of its own.
            fn __sizeof__(&self, py: Python<'_>) -> usize {
                size_of::<Self>() + self.contents.read(py, |contents| match contents {
                    Contents::Owned(filter) => filter.size_in_bytes(),
                    Contents::Mapped(_) => 0,
                })
            }

            fn __bool__(&self, py: Python<'_>) -> bool {
                self.contents.read(py, |contents| {
                    with_filter!(contents, filter => !filter.is_empty())
                })
            }

            /// Raises TypeError: a filter does not store its keys.
            fn __iter__(&self) -> PyResult<()> {
                Err($crate::error::no_keys())
            }

            #[doc = concat!(
                "The number of distinct keys it was built for. They always fit.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.capacity\n",
                "    1000\n",
            )]
            #[getter]
            fn capacity(&self, py: Python<'_>) -> u64 {
                self.contents.read(py, |contents| {
                    with_filter!(contents, filter => filter.capacity())
                })
            }

            #[doc = concat!(
                "The false-positive rate it was built for, 0 to 1.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.error_rate\n",
                "    0.001\n",
            )]
            #[getter]
            fn error_rate(&self, py: Python<'_>) -> f64 {
                self.contents.read(py, |contents| {
                    with_filter!(contents, filter => filter.requested_false_positive_rate())
                })
            }

            #[doc = concat!(
                "The seed of the hash function. None if there is a secret instead.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.seed == int.from_bytes(b'koelhash', 'little')\n",
                "    True\n",
            )]
            #[getter]
            fn seed(&self) -> Option<u64> {
                match self.hashing.hasher {
                    koel::KeyHasher::Xxh3 { seed } => Some(seed),
                    _ => None,
                }
            }

            #[doc = concat!(
                "Eight bytes of the program that built it. The command `koel` stores how it made\n",
                "keys of lines (docs/FORMAT.md, Lines): `bytes(8)` if a key is the line itself.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.application == bytes(8)\n",
                "    True\n",
            )]
            #[getter]
            fn application<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                let application = self.contents.read(py, |contents| {
                    with_filter!(contents, filter => filter.application())
                });
                PyBytes::new(py, &application)
            }

            #[doc = concat!(
                "The probability that an absent key is reported as present now, 0 to 1.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.false_positive_rate\n",
                "    0.0\n",
            )]
            #[getter]
            fn false_positive_rate(&self, py: Python<'_>) -> f64 {
                self.contents.read(py, |contents| {
                    with_filter!(contents, filter => filter.false_positive_rate())
                })
            }

            #[doc = concat!(
                "The share of slots in use, 0 to 1.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.load_factor\n",
                "    0.0\n",
            )]
            #[getter]
            fn load_factor(&self, py: Python<'_>) -> f64 {
                self.contents.read(py, |contents| {
                    with_filter!(contents, filter => filter.load_factor())
                })
            }

            #[doc = concat!(
                "Bytes of memory, and of the file.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.nbytes == len(f.to_bytes())\n",
                "    True\n",
            )]
            #[getter]
            fn nbytes(&self, py: Python<'_>) -> usize {
                self.contents.read(py, |contents| {
                    with_filter!(contents, filter => filter.size_in_bytes())
                })
            }

            #[doc = concat!(
                "Whether it grows when it is full, instead of raising `koel.Full`.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.growable\n",
                "    False\n",
            )]
            #[getter]
            fn growable(&self, py: Python<'_>) -> bool {
                self.contents.read(py, |contents| {
                    with_filter!(contents, filter => filter.is_growable())
                })
            }

            #[doc = concat!(
                "Whether it reads a memory-mapped file, and so cannot be changed.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.readonly\n",
                "    False\n",
            )]
            #[getter]
            fn readonly(&self, py: Python<'_>) -> bool {
                self.contents.read(py, Contents::is_mapped)
            }

            #[doc = concat!(
                "Removes everything. The size stays.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n    >>> ", $add, "\n",
                "    >>> f.clear()\n",
                "    >>> len(f)\n",
                "    0\n",
            )]
            fn clear(&self, py: Python<'_>) -> PyResult<()> {
                self.contents.write_detached(py, |contents| {
                    contents.owned()?.clear();
                    Ok(())
                })
            }

            #[doc = concat!(
                "Moves the entries to the smallest table that holds them, but to none smaller\n",
                "than the one it was built with. Needs the memory of both.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.shrink_to_fit()\n",
            )]
            fn shrink_to_fit(&self, py: Python<'_>) -> PyResult<()> {
                let contents = self.contents.clone();
                // Given up, it still shrinks, which changes no answer.
                $crate::long::run(py, move |_| contents.write_alone(|contents| {
                    contents.owned()?.shrink_to_fit();
                    Ok(())
                }))?
            }

            #[doc = concat!(
                "A copy in memory of its own, which can be changed.\n\n",
                "Raises MemoryError.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.copy() == f\n",
                "    True\n",
            )]
            fn copy(&self, py: Python<'_>) -> PyResult<Self> {
                self.copied(py).map(Self::own)
            }

            fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
                self.copy(py)
            }

            fn __deepcopy__(&self, py: Python<'_>, memo: Bound<'_, PyAny>) -> PyResult<Self> {
                drop(memo);
                self.copy(py)
            }

            /// Whether both hold the same; see docs/PYTHON.md.
            fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                let py = other.py();
                let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
                let other = &other.get().contents;
                let equal = py.detach(|| self.contents.read_both(other, |ours, theirs| {
                    with_filter!(ours, ours => {
                        with_filter!(theirs, theirs => $crate::body::Same::is_same(ours, theirs))
                    })
                }));
                Ok(equal?.into_pyobject(py)?.to_owned().into_any().unbind())
            }

            fn __repr__(&self, py: Python<'_>) -> String {
                self.contents.read(py, |contents| with_filter!(contents, filter => format!(
                    concat!("<koel.", $name, ": len {}, capacity {}, load {:.1} %, {} bytes>"),
                    filter.len(),
                    filter.capacity(),
                    100.0 * filter.load_factor(),
                    filter.size_in_bytes(),
                )))
            }

            fn _repr_html_(&self, py: Python<'_>) -> String {
                use $crate::face::{grouped, html_row};

                self.contents.read(py, |contents| with_filter!(contents, filter => {
                    let load = filter.load_factor();
                    let bar = format!(
                        "<progress value=\"{load:.4}\" max=\"1\"></progress> {:.1} %",
                        100.0 * load,
                    );
                    let (now, built) =
                        (filter.false_positive_rate(), filter.requested_false_positive_rate());
                    let rows = [
                        html_row("len", &grouped(filter.len())),
                        html_row("capacity", &grouped(filter.capacity())),
                        html_row("load", &bar),
                        html_row("bytes", &grouped(filter.size_in_bytes() as u64)),
                        html_row("layout", &filter.layout().to_string()),
                        html_row("false positives now", &$crate::face::rate(now)),
                        html_row("false positives, built for", &$crate::face::rate(built)),
                        html_row("growable", ["no", "yes"][usize::from(filter.is_growable())]),
                    ];
                    let rows = rows.concat();
                    format!(
                        concat!("<table><caption>koel.", $name, "</caption>{}</table>"),
                        rows,
                    )
                }))
            }
        }
        $crate::file::file_face!($Face, $Mapped, $name, $new, $add);
    };
}
pub(crate) use face;
