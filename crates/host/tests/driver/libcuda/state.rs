//! What the fake driver knows: what it was told, what was called, what there is and what is wrong with how it is used.

use std::alloc::Layout;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

pub type Handle = usize;

/// What a stream does: a copy, or a kernel where they compute. Its code.
pub type Job = Arc<dyn Fn() -> c_int + Send + Sync>;

#[derive(Default)]
pub struct State {
    settings: HashMap<String, u64>,
    /// By function: the code, and how often.
    failing: HashMap<String, (c_int, u64)>,
    /// The call of that number, counted from when this was told, fails with that code.
    nth: Option<(u64, c_int)>,
    /// So do that call and all after it.
    from: Option<(u64, c_int)>,
    /// The function that was first met by either.
    pub hit: &'static str,
    /// Calls since anything was told.
    pub count: u64,
    /// The code of the fault after which nothing works; and one that a kernel under way will end with.
    lost: c_int,
    pending: c_int,
    /// What was called, in order; what was freed, destroyed or unloaded while a stream had work; what no call may do.
    pub calls: Vec<&'static str>,
    pub freed_in_use: Vec<&'static str>,
    pub misused: Vec<String>,
    /// Entry, grid, threads a block, bytes of shared memory.
    pub launches: Vec<String>,
    /// Of launches that multiply batches: how many matrices, and for A, B and C the first one's address and the list's.
    pub batches: Vec<String>,
    last: Handle,
    /// Retentions by device.
    pub contexts: HashMap<c_int, i64>,
    /// Contexts of streams.
    pub streams: HashMap<Handle, Handle>,
    /// What nobody has waited for.
    work: Vec<Work>,
    /// How much was given to streams so far.
    given: u64,
    /// How much had been given when a thread waited for all of it, while it has done nothing since but give things back: what
    /// others gave later does not use what that thread lets go of.
    waited: HashMap<ThreadId, u64>,
    /// Streams that are recorded: by which thread, and whether that can still end well.
    pub recorded: HashMap<Handle, (ThreadId, bool)>,
    pub events: HashMap<Handle, Event>,
    pub modules: HashSet<Handle>,
    pub graphs: HashSet<Handle>,
    pub executables: HashSet<Handle>,
    /// What is recorded, by streams, graphs and executables.
    pub jobs: HashMap<Handle, Vec<Job>>,
    /// Kernels, by their handles.
    pub functions: HashMap<Handle, Function>,
    pub memory: HashMap<u64, Layout>,
    pub pinned: HashMap<u64, Layout>,
}

/// Work of a stream, and how much had been given to streams with it.
struct Work {
    stream: Handle,
    number: u64,
    /// First and last address of what a copy reads and of what it writes; a kernel may use anything of the device's.
    copied: Option<[(u64, u64); 2]>,
    /// What is done when somebody waits for it; of work that was done when it was given nothing.
    job: Option<Job>,
}

/// An event; of its last record the stream, 0 before the first, and how much had been given.
#[derive(Clone, Copy)]
pub struct Event {
    pub context: Handle,
    pub stream: Handle,
    pub until: u64,
}

/// A kernel of a module.
pub struct Function {
    pub module: Handle,
    pub name: String,
    /// Bytes of dynamic shared memory that its blocks may have.
    pub shared: c_int,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

thread_local! {
    pub static CONTEXTS: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

pub struct Locked(MutexGuard<'static, Option<State>>);

impl std::ops::Deref for Locked {
    type Target = State;
    fn deref(&self) -> &State {
        self.0.as_ref().expect("made by state()")
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut State {
        self.0.as_mut().expect("made by state()")
    }
}

pub fn state() -> Locked {
    let mut guard = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    guard.get_or_insert_with(|| {
        let mut state = State { last: 0x1000, ..State::default() };
        state.tell(&std::env::var("FAKE_CUDA").unwrap_or_default());
        state
    });
    Locked(guard)
}

/// In place of a code: the function does not return before something else is told.
const STALLS: c_int = -1;

/// What waits for streams, or takes what work may use: none of it while the same thread records.
const FORBIDDEN: [&str; 8] = [
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuEventSynchronize",
    "cuEventQuery",
];

/// How the names of functions begin that give something back, or choose a context.
const GIVES_BACK: [&str; 7] = [
    "cuCtx",
    "cuMemFree",
    "cuModuleUnload",
    "cuStreamDestroy",
    "cuEventDestroy",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
];

impl State {
    /// Forgets what it was told before. What there is stays, and what is lost stays lost.
    pub fn tell(&mut self, words: &str) {
        (self.settings, self.failing) = Default::default();
        (self.nth, self.from, self.hit, self.count) = (None, None, "", 0);
        for (name, value) in words.split_whitespace().filter_map(|word| word.split_once('=')) {
            if name.starts_with("cu") {
                let (code, times) = value.split_once('*').unwrap_or((value, "1000000"));
                self.failing.insert(name.to_owned(), (code.parse().expect("a code"), times.parse().expect("a count")));
            } else if let Some((number, code)) = value.split_once(':') {
                let told = Some((number.parse().expect("a number"), code.parse().expect("a code")));
                *(if name == "from" { &mut self.from } else { &mut self.nth }) = told;
            } else {
                self.settings.insert(name.to_owned(), value.parse().expect("a number"));
            }
        }
    }

    pub fn setting(&self, name: &str, default: u64) -> u64 {
        self.settings.get(name).copied().unwrap_or(default)
    }

    pub fn handle(&mut self) -> Handle {
        self.last += 0x100;
        self.last
    }

    fn used(&self) -> u64 {
        self.memory.values().map(|layout| layout.size() as u64).sum()
    }

    /// Free and total bytes.
    pub fn room(&self) -> (u64, u64) {
        let all = self.setting("memory", 1 << 30);
        (all.saturating_sub(self.used()), all)
    }

    /// A stream has a kernel, a graph, or a copy between two places, to do; while it is recorded, nothing.
    pub fn gives(&mut self, stream: Handle, copied: Option<[(u64, usize); 2]>) {
        if self.recorded.contains_key(&stream) {
            return;
        }
        self.given += 1;
        let copied = copied.map(|both| both.map(|(first, bytes)| (first, first + (bytes as u64).max(1) - 1)));
        self.work.push(Work { stream, number: self.given, copied, job: None });
    }

    /// Does what of the work is left to do, in order, and forgets it.
    fn finish(&mut self, is_done: impl Fn(&Work) -> bool) {
        let (done, left) = std::mem::take(&mut self.work).into_iter().partition(is_done);
        self.work = left;
        let done: Vec<Work> = done;
        done.into_iter().filter_map(|work| work.job).for_each(|job| {
            job();
        });
    }

    /// All that a stream was given up to then is done; it goes in order.
    pub fn done(&mut self, stream: Handle, until: u64) {
        self.finish(|work| work.stream == stream && work.number <= until);
    }

    /// All that was given to the streams of a context is done.
    pub fn all_done(&mut self, context: Handle) {
        let of = |stream| self.streams.get(&stream) == Some(&context);
        let here: Vec<Handle> = self.work.iter().map(|work| work.stream).filter(|stream| of(*stream)).collect();
        self.finish(|work| here.contains(&work.stream));
        self.waited.insert(thread::current().id(), self.given);
    }

    /// Whether a stream has something of that left to do.
    pub fn is_busy(&self, stream: Handle, until: u64) -> bool {
        self.work.iter().any(|work| work.stream == stream && work.number <= until)
    }

    /// Whether a kernel is under way that may use what this thread gives back: any module and any memory of the device's.
    pub fn computes(&self) -> bool {
        let until = self.waited.get(&thread::current().id()).copied().unwrap_or(u64::MAX);
        self.work.iter().any(|work| work.copied.is_none() && work.number <= until)
    }

    /// Notes that something is given back which no work may use any more.
    pub fn frees(&mut self, function: &'static str, is_busy: bool) {
        if is_busy {
            self.freed_in_use.push(function);
        }
    }

    /// The same of memory.
    pub fn frees_memory(&mut self, function: &'static str, address: u64, is_pinned: bool) {
        let found = if is_pinned { self.pinned.get(&address) } else { self.memory.get(&address) };
        let last = address + found.map_or(0, |layout| layout.size() as u64 - 1);
        let is_copied =
            self.work.iter().filter_map(|work| work.copied).flatten().any(|(from, to)| from <= last && to >= address);
        self.frees(function, is_copied || !is_pinned && self.computes());
    }

    /// Memory that holds no zeros: every bit is set, which is NaN, and no ticket's first number.
    pub fn allocate(&mut self, bytes: usize, is_pinned: bool) -> Option<u64> {
        let layout = Layout::from_size_align(bytes, 256).ok()?;
        if bytes == 0 || (!is_pinned && bytes as u64 > self.room().0) {
            return None;
        }
        // SAFETY: not of no bytes.
        let memory = unsafe { std::alloc::alloc(layout) };
        if memory.is_null() {
            return None;
        }
        // SAFETY: it was just allocated, with so many bytes.
        unsafe { memory.write_bytes(0xFF, bytes) };
        let address = memory as u64;
        if is_pinned {
            self.pinned.insert(address, layout)
        } else {
            self.memory.insert(address, layout)
        };
        Some(address)
    }

    /// Address and bytes of the device's memory, in no order.
    pub fn allocations(&self) -> Vec<String> {
        self.memory.iter().map(|(address, layout)| format!("{address} {}", layout.size())).collect()
    }

    /// First and last address of the device's memory that an address lies in, the last one past the end; empty where it lies in none.
    #[cfg(feature = "emulated")]
    pub fn allocation(&self, address: u64) -> std::ops::Range<u64> {
        let mut ranges = self.memory.iter().map(|(start, layout)| *start..start + layout.size() as u64);
        ranges.find(|range| range.contains(&address)).unwrap_or(address..address)
    }

    /// A kernel has ended the context: the code that it gets, and all calls after it.
    #[cfg(feature = "emulated")]
    pub fn loses(&mut self, code: c_int) -> c_int {
        self.lost = code;
        code
    }

    pub fn free(&mut self, address: u64, is_pinned: bool) -> c_int {
        let found = if is_pinned { self.pinned.remove(&address) } else { self.memory.remove(&address) };
        let Some(layout) = found else { return self.misuse(1, "memory that is not there is freed") };
        // SAFETY: from `allocate`, which was asked for so many bytes.
        unsafe { std::alloc::dealloc(address as *mut u8, layout) };
        0
    }

    /// Notes what no caller may do; the code that it gets.
    pub fn misuse(&mut self, code: c_int, what: &str) -> c_int {
        let function = self.calls.last().copied().unwrap_or_default();
        self.misused.push(format!("{function}: {what}"));
        code
    }

    /// The code for something that is there, and is used or, if it was one of `from`, gone now.
    pub fn gone(&mut self, was: bool, what: &str) -> c_int {
        if was { 0 } else { self.misuse(400, &format!("{what} that is not there")) }
    }

    /// The code for work that is given to a stream: 0 for one of the current context.
    pub fn takes(&mut self, stream: Handle) -> c_int {
        match self.streams.get(&stream).copied() {
            // Also the legacy stream and a thread's own by their numbers.
            None if stream <= 2 => self.misuse(400, "the null stream"),
            None => self.misuse(400, "a stream that is not there"),
            Some(of) if of == context() => 0,
            Some(_) => self.misuse(400, "a stream of another context than the current one"),
        }
    }

    /// The code for an event that is recorded in a stream: both of the current context.
    pub fn records(&mut self, event: Handle, stream: Handle) -> c_int {
        let until = self.given;
        let Some(found) = self.events.get_mut(&event) else { return self.misuse(400, "an event that is not there") };
        (found.stream, found.until) = (stream, until);
        if found.context == context() { self.takes(stream) } else { self.misuse(400, "an event of another context") }
    }

    /// The code for the time between two events, which are of one context.
    pub fn measures(&mut self, start: Handle, end: Handle) -> c_int {
        match (self.events.get(&start), self.events.get(&end)) {
            (Some(start), Some(end)) if start.context == end.context => 0,
            (Some(_), Some(_)) => 400, // what a caller may try, and the library leaves to the driver
            _ => self.misuse(400, "an event that is not there"),
        }
    }

    /// The same for a copy, or for memory that is set.
    pub fn copies(&mut self, stream: Handle, from: u64, to: u64, bytes: usize) -> c_int {
        let code = self.takes(stream);
        if code == 0 {
            self.gives(stream, Some([(from, bytes), (to, bytes)]));
        }
        code
    }

    /// What is to be done now: a job of this stream, unless it is recorded, or late.
    pub fn now(&mut self, stream: Handle, job: Job) -> Option<Job> {
        if !self.recorded.contains_key(&stream) {
            let last = self.work.iter_mut().rfind(|work| work.stream == stream);
            return match last.filter(|_| self.settings.get("late") == Some(&1)) {
                Some(work) => {
                    work.job = Some(job);
                    None
                }
                None => Some(job),
            };
        }
        self.jobs.entry(stream).or_default().push(job);
        None
    }

    /// The code of what cannot be recorded: 900, and the recordings that it spoils cannot end well.
    fn recording(&mut self, function: &'static str) -> c_int {
        let everywhere = function == "cuCtxSynchronize";
        if !everywhere && !FORBIDDEN.contains(&function) {
            return 0;
        }
        let (me, mut code) = (thread::current().id(), 0);
        for (_, is_whole) in self.recorded.values_mut().filter(|(thread, _)| everywhere || *thread == me) {
            (code, *is_whole) = (900, false);
        }
        code
    }

    /// What every call begins with: its code if it is to fail.
    fn answer(&mut self, function: &'static str) -> c_int {
        self.calls.push(function);
        self.count += 1;
        if !GIVES_BACK.iter().any(|start| function.starts_with(start)) {
            self.waited.remove(&thread::current().id());
        }
        let told = self.told(function);
        if told != 0 {
            if function == "cuStreamEndCapture" {
                self.recorded.clear(); // it ends, whatever becomes of it
            }
            return told;
        }
        if self.lost != 0 && !function.starts_with("cuCtxP") && !function.starts_with("cuDevice") {
            return self.lost;
        }
        self.recording(function)
    }

    fn told(&mut self, function: &'static str) -> c_int {
        // Work under way has failed: said by the next call that looks at the context, and by all after it.
        let looks = ["cuStreamS", "cuCtxSy", "cuEventS", "cuMem", "cuLaunch", "cuGraphL", "cuModuleL"];
        if self.pending != 0 && looks.iter().any(|start| function.starts_with(start)) {
            self.lost = std::mem::take(&mut self.pending);
        }
        let mut code = 0;
        if let Some((_, nth)) = self.nth.filter(|(number, _)| *number == self.count) {
            (self.hit, code) = (function, nth);
        }
        if let Some((number, told)) = self.from.filter(|(number, _)| *number <= self.count) {
            code = told;
            if number == self.count {
                self.hit = function;
            }
        }
        if let Some((told, times)) = self.failing.get_mut(function).filter(|(_, times)| *times > 0) {
            *times -= 1;
            code = *told;
        }
        // A context that is not made is none that is lost; 709 is said of one context, which others may have made anew.
        let sticky = matches!(code, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 721 | 810);
        if sticky && function != "cuDevicePrimaryCtxRetain" && self.lost == 0 {
            self.lost = code;
        }
        code
    }

    /// A kernel is taken that will fail, if one is to.
    pub fn launched(&mut self) {
        let code = self.settings.remove("async").unwrap_or(0);
        if code != 0 {
            self.pending = code as c_int;
        }
    }

    /// How many there are of each kind, as words.
    pub fn living(&self) -> String {
        let kinds = BTreeMap::from([
            ("contexts", self.contexts.values().sum::<i64>()),
            ("events", self.events.len() as i64),
            ("executables", self.executables.len() as i64),
            ("graphs", self.graphs.len() as i64),
            ("memory", self.memory.len() as i64),
            ("modules", self.modules.len() as i64),
            ("pinned", self.pinned.len() as i64),
            ("recorded", self.recorded.len() as i64),
            ("streams", self.streams.len() as i64),
        ]);
        kinds.iter().map(|(kind, count)| format!("{kind}={count}")).collect::<Vec<_>>().join(";")
    }
}

pub fn answer(function: &'static str) -> c_int {
    let code = state().answer(function);
    if code != STALLS {
        return code;
    }
    while state().failing.get(function).is_some_and(|(code, _)| *code == STALLS) {
        thread::sleep(Duration::from_millis(1));
    }
    0
}

pub fn context() -> Handle {
    CONTEXTS.with_borrow(|contexts| contexts.last().copied().unwrap_or(0))
}

/// The context of a device.
pub fn primary(device: c_int) -> Handle {
    0x100 + device as Handle
}
