//! Emits the events of an LLM inference engine written in Rust to llmtop: opens an event socket and writes to it. One
//! file, standard library only, no unsafe code, Rust 1.89 or later, edition 2021 or 2024. Copy it next to `main.rs`:
//!
//! ```ignore
//! mod llmtop;
//!
//! let top = llmtop::Emitter::open(llmtop::Options::new("my-engine"))?;
//! top.queued(1, &llmtop::Request::default());
//! {
//!     let mut prefill = top.span(1, llmtop::stage::PREFILL);
//!     prefill.tokens(12);
//! } // the span ends here
//! top.token(1, 0, 1510);
//! top.finished(1, "stop", &llmtop::Usage::default());
//! ```
//!
//! and run `llmtop attach` in another terminal. The protocol is docs/event-protocol.md, version 1.0.
//!
//! An [`Emitter`] is cheap to clone and may be used by all threads. Emitting is wait-free: it stamps the event, copies
//! it into a ring and returns, without locks, system calls or allocations. A separate thread writes to the readers.
//! Events that do not fit in the ring are dropped and counted by kind. Events that a slow reader misses are dropped for
//! that reader, oldest first, and also counted. Exceptions, for rare calls: [`Emitter::host`], [`Emitter::loaded`],
//! [`Emitter::state`] and the first use of a stage name allocate; router picks use `try_read` on a lock that only
//! `loaded` holds exclusively.
//!
//! Request ids are 1 to 2^53-1; 0 means the engine itself, and is ignored where a request is required.
#![allow(dead_code)] // an engine uses only a part of the API
#![forbid(unsafe_code)]

use std::cell::Cell as StdCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::{mpsc, Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, mem, panic, process, thread};

#[cfg(unix)]
use std::os::unix::{
    fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
    net::{UnixListener, UnixStream},
};

// ---- what an engine emits -------------------------------------------------------------------------------------------

/// Capabilities of an engine, for [`Options::caps`]. What it emits is added by itself. A reader shows what is missing as
/// "not reported".
pub mod caps {
    pub const STAGES: u32 = 1;
    pub const TOKENS: u32 = 1 << 1;
    pub const EXPERTS: u32 = 1 << 2;
    /// Router picks per token.
    pub const PICKS: u32 = 1 << 3;
    pub const KV: u32 = 1 << 4;
    pub const STEPS: u32 = 1 << 5;
    /// Reports both queued and dispatched.
    pub const QUEUE: u32 = 1 << 6;
    /// Has a device separate from the host and stamps transfers.
    pub const DEVICE: u32 = 1 << 7;
    pub const HOST: u32 = 1 << 8;
    pub const OPS: u32 = 1 << 9;
    pub(super) const NAMES: [&str; 10] = ["stages", "tokens", "experts", "picks", "kv", "steps", "queue", "device", "host", "ops"];
}

/// Standard stage names. Any other word is an engine-specific stage.
pub mod stage {
    pub const LOAD: &str = "model_load";
    /// From the first byte of a request to its tokenization.
    pub const RECEIVE: &str = "receive";
    /// From enqueue to dispatch, without the next.
    pub const QUEUE: &str = "queue";
    /// Part of that wait in which the requests that held the slots waited on purpose.
    pub const PACED_BY_OTHERS: &str = "paced_by_others";
    pub const TOKENIZE: &str = "tokenize";
    pub const EMBED: &str = "embed";
    pub const PREFILL: &str = "prompt";
    pub const FIRST_TOKEN: &str = "first_token";
    pub const HOST_TO_DEVICE: &str = "host_to_device";
    pub const DEVICE_TO_HOST: &str = "device_to_host";
    /// From the first token to the next byte of the answer; emit it before that token.
    pub const SEND: &str = "send";
    pub const ATTENTION: &str = "attention";
    pub const ROUTER: &str = "router";
    pub const EXPERTS: &str = "experts";
    pub const LM_HEAD: &str = "lm_head";
    pub const SAMPLE: &str = "sample";
    pub const PACE: &str = "pace";
    /// Engine-specific: not part of the time to first token.
    pub const DECODE: &str = "decode";
    /// Encoding a text in pieces: the first call.
    pub const ENCODE_STREAM_START: &str = "encode_stream_start";
    /// Encoding a text in pieces: the call for each further piece.
    pub const ENCODE_STREAM_NEXT: &str = "encode_stream_next";
    /// Looking up a prefix in a cache of the tokenizer.
    pub const CACHE_LOOKUP: &str = "cache_lookup";
    /// Replaces names beyond the 255th.
    pub(super) const OTHER: &str = "other";
}

/// The kinds of events by which drops are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Engine,
    Model,
    Request,
    Stage,
    Token,
    Experts,
    Kv,
    Step,
    Host,
    Counters,
    Log,
    Ops,
    Usage,
    Speculation,
}
const KINDS: [&str; 14] =
    ["engine", "model", "request", "stage", "token", "experts", "kv", "step", "host", "counters", "log", "ops", "usage", "speculation"];

/// Configuration of the event socket.
pub struct Options {
    /// Name of the engine; required.
    pub name: String,
    pub version: String,
    /// `None`: NAME-PID.sock in the folder where `llmtop attach` looks for engines. `unix:PATH`, or `tcp:HOST:PORT`;
    /// port 0: any.
    pub address: Option<String>,
    /// Token that readers must send; required beyond loopback.
    pub token: Option<String>,
    /// Bits of [`caps`]; by default stages and tokens.
    pub caps: u32,
    /// Also send the text of prompts and tokens.
    pub text: bool,
    /// Maximum number of concurrent requests; 0: not reported.
    pub slots: u32,
    pub device: Option<Device>,
    /// Empty: ready.
    pub state: String,
    /// A model that is already loaded.
    pub model: Option<Model>,
    /// Cells of 64 bytes in the ring, rounded up to a power of 2. An event uses one, text uses more. The ring is read
    /// every 10 ms or, after a second without events, every 50 ms.
    pub ring: usize,
    /// Bytes kept for slow readers.
    pub backlog: usize,
    /// Keep stages for [`Emitter::csv`].
    pub csv: bool,
    pub controls: Controls,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            name: String::new(),
            version: String::new(),
            address: None,
            token: None,
            caps: caps::STAGES | caps::TOKENS,
            text: false,
            slots: 0,
            device: None,
            state: String::new(),
            model: None,
            ring: 1 << 14,
            backlog: 4 << 20,
            csv: false,
            controls: Controls::default(),
        }
    }
}

impl Options {
    pub fn new(name: impl Into<String>) -> Self {
        Options { name: name.into(), ..Options::default() }
    }
}

/// The device that the engine computes on.
#[derive(Clone, Debug, Default)]
pub struct Device {
    pub name: String,
    /// Instruction set or backend.
    pub kernels: String,
    /// There is no device separate from the host.
    pub host: bool,
    pub threads: u32,
}

/// A model. 0 and empty: not reported.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub name: String,
    /// Its GGUF or safetensors file, or their folder: llmtop on the same machine reads what is not given from it.
    pub path: String,
    pub architecture: String,
    pub quantisation: String,
    pub parameters: u64,
    /// Used per token.
    pub active_parameters: u64,
    pub bytes: u64,
    pub layers: u64,
    pub width: u64,
    pub heads: u64,
    pub kv_heads: u64,
    pub head_dim: u64,
    pub vocabulary: u64,
    /// Per layer.
    pub experts: u64,
    /// Per token and layer.
    pub experts_used: u64,
    pub feed_forward: u64,
    pub context: u64,
    pub trained_context: u64,
    /// Per token, all layers.
    pub kv_bytes: u64,
    /// Bytes read to decode one token.
    pub weight_bytes: u64,
}

/// A request. `None`, false and empty: not reported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// LoRA adapter or tenant.
    pub group: &'a str,
    /// Prompt kind.
    pub label: &'a str,
    /// The engine's own id, if it is not numeric.
    pub name: &'a str,
    /// Sent to all readers with [`Options::text`], else to the one of `text`.
    pub prompt: &'a str,
    pub max_tokens: Option<u64>,
    /// Cached ones included.
    pub prompt_tokens: Option<u32>,
    /// The first request since the model load began.
    pub cold: bool,
    /// A probe, not sent by a user.
    pub probe: bool,
    /// The reader that gets its prompt and the texts of its tokens, because it asked for them ([`Generation::text`]).
    pub text: TextFor,
}

/// Token counts of a request that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Prompt tokens, including cached ones.
    pub prompt: Option<u64>,
    /// Prompt tokens taken from a cache.
    pub cached: Option<u64>,
    pub generated: Option<u64>,
    /// Padding tokens of a batch.
    pub pad: Option<u32>,
    /// The earlier request with the same beginning of the prompt; 0: not reported.
    pub reuse: u64,
    /// Where the prompt stops to be the same, in tokens.
    pub reuse_at: u64,
    /// Why no more was reused; empty: not reported.
    pub reuse_why: &'static str,
}

/// A token, or several with the same stamp.
#[derive(Clone, Copy, Debug, Default)]
pub struct Token<'a> {
    pub request: u64,
    /// When it left the sampler; `None`: now.
    pub at: Option<Instant>,
    /// Position of the first token in the generated text, from 0.
    pub index: Option<u32>,
    /// Vocabulary id of the first token.
    pub id: Option<u32>,
    /// Number of tokens with this stamp; 0 means 1.
    pub count: u32,
    /// Number of the forward pass that generated it, from 1; 0: not reported.
    pub step: u64,
    /// Natural logarithm of its probability.
    pub logprob: Option<f32>,
    /// Time spent in sampling it.
    pub sampling: Option<Duration>,
    /// Sent only if enabled, see [`Options::text`]. It may end within a UTF-8 sequence. At most 4 KiB.
    pub text: &'a [u8],
    /// Experts that the router picked for it, layer by layer.
    pub picks: &'a [u16],
    /// Alternatives as id and log probability, likeliest first; at most 255.
    pub top: &'a [(u32, f32)],
}

/// A forward pass that ends now.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub began: Instant,
    /// From 1; 0: not reported.
    pub number: u64,
    /// Decode tokens in the batch.
    pub decode: Option<u32>,
    /// Prompt tokens in the batch.
    pub prompt: Option<u32>,
    /// ns in embed, attention, router, experts, lm_head, sample.
    pub split: Option<[u32; 6]>,
    /// Empty, or a JSON object of forward-pass metrics, see `fpm` in the protocol. Anything else is ignored.
    pub metrics: &'a str,
}

impl Step<'_> {
    pub fn since(began: Instant) -> Self {
        Step { began, number: 0, decode: None, prompt: None, split: None, metrics: "" }
    }
}

const PARTS: [&str; 6] = [stage::EMBED, stage::ATTENTION, stage::ROUTER, stage::EXPERTS, stage::LM_HEAD, stage::SAMPLE];

/// A forward pass that is timed until [`Forward::end`], or until it is dropped; see [`Emitter::step_begin`]. On an
/// accelerator the pass, and each part, has to wait for the device, otherwise it measures only launches: leave parts out
/// there. A pass that panics is reported without its numbers of tokens.
#[must_use = "a pass ends when it is dropped"]
pub struct Forward<'a> {
    top: &'a Emitter,
    request: u64,
    number: u64,
    /// Decode tokens in the batch; it may be set until the end.
    pub decode: Option<u32>,
    /// Prompt tokens in the batch; it may be set until the end.
    pub prompt: Option<u32>,
    began: Instant,
    body: StdCell<Option<Instant>>, // the end of the layers, once it has ended
    parts: [StdCell<u64>; 6],       // ns
}

impl Forward<'_> {
    /// Its number, for [`Token::step`].
    pub fn number(&self) -> u64 {
        self.number
    }

    /// A part of the pass until it is dropped: [`stage::EMBED`], [`stage::ATTENTION`], [`stage::ROUTER`],
    /// [`stage::EXPERTS`], [`stage::LM_HEAD`] or [`stage::SAMPLE`]; any other name becomes a stage of its own. With a
    /// layer, it is also a stage of the request. Sampling may follow the end of the pass.
    pub fn part(&self, name: &'static str, layer: Option<u32>) -> Part<'_> {
        Part { pass: self, name, layer, began: Instant::now() }
    }

    /// Ends the pass before its scope does; ending it twice has no effect.
    pub fn end(&self) {
        self.end_with(self.decode, self.prompt);
    }

    fn end_with(&self, decode: Option<u32>, prompt: Option<u32>) {
        if self.body.get().is_some() {
            return;
        }
        let now = Instant::now();
        let [embed, _, _, _, head, sample] = self.parts.each_ref().map(StdCell::get);
        let body = now.checked_sub(Duration::from_nanos(head + sample)).unwrap_or(now).max(self.began);
        self.body.set(Some(body)); // the LM head and sampling come after the layers
        let split = self.parts.each_ref().map(|ns| ns.get().min(u64::from(u32::MAX)) as u32);
        let split = split.iter().any(|&ns| ns > 0).then_some(split);
        self.top.step_at(&Step { began: self.began, number: self.number, decode, prompt, split, metrics: "" }, now);
        let Some(tokens) = prompt.filter(|&n| n > 0 && self.request != 0) else { return };
        if embed > 0 {
            self.stage(stage::EMBED, None, self.began + Duration::from_nanos(embed), embed, tokens);
        }
        let took = nanos(body.saturating_duration_since(self.began)).saturating_sub(embed);
        self.stage(stage::PREFILL, None, body, took, tokens);
    }

    fn stage(&self, name: &str, layer: Option<u32>, at: Instant, took: u64, tokens: u32) {
        let s = &self.top.shared;
        s.stage(self.request, s.names.place(name), layer.unwrap_or(ABSENT32), at, took, u64::from(tokens), None);
    }

    /// As [`Emitter::token`], for a token that the pass has made. Ends the pass.
    pub fn token(&self, request: u64, index: u32, id: u32) {
        self.tokens(&[Token { request, index: Some(index), id: Some(id), ..Token::default() }]);
    }

    /// As [`Emitter::tokens`], for tokens that the pass has made. Ends the pass. With the first token of its request
    /// comes the first_token stage.
    pub fn tokens(&self, tokens: &[Token]) {
        self.end();
        let now = Instant::now();
        let sampled = self.parts[5].get();
        for token in tokens.iter().filter(|t| t.request != 0) {
            let at = token.at.unwrap_or(now);
            let mut token = Token { step: self.number, at: Some(at), ..*token };
            let alone = self.request == token.request || self.decode == Some(1) && self.prompt.unwrap_or(0) == 0;
            if token.sampling.is_none() && sampled > 0 && alone {
                token.sampling = Some(Duration::from_nanos(sampled));
            }
            let first = token.index == Some(0) && self.request == token.request && self.prompt.unwrap_or(0) > 0;
            if let Some(body) = self.body.get().filter(|_| first) {
                self.stage(stage::FIRST_TOKEN, None, at, nanos(at.saturating_duration_since(body)), 0);
            }
            self.top.shared.token(&token, 0);
        }
    }
}

impl Drop for Forward<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.end_with(None, None);
        } else {
            self.end();
        }
    }
}

/// A part of a [`Forward`] pass. It ends when it is dropped.
#[must_use = "a part ends when it is dropped"]
pub struct Part<'a> {
    pass: &'a Forward<'a>,
    name: &'static str,
    layer: Option<u32>,
    began: Instant,
}

impl Part<'_> {
    /// Ends it before its scope does.
    pub fn end(self) {}
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        let (now, pass) = (Instant::now(), self.pass);
        let took = nanos(now.saturating_duration_since(self.began));
        let Some(part) = PARTS.iter().position(|name| *name == self.name) else {
            return pass.stage(self.name, self.layer, now, took, 0);
        };
        pass.parts[part].set(pass.parts[part].get() + took);
        let prompt = pass.prompt.unwrap_or(0);
        if self.layer.is_some() && pass.request != 0 && prompt > 0 {
            pass.stage(self.name, self.layer, now, took, prompt);
        }
    }
}

/// Time of an operation, cumulative; see [`Emitter::ops`].
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    pub name: &'a str,
    /// `None`: outside all layers.
    pub layer: Option<u32>,
    pub calls: u64,
    pub time: Duration,
}

/// Decode passes of one shape, cumulative; see [`Emitter::draft`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// Drafts were computed for it.
    pub drafts: bool,
    /// Requests in a pass, and the tokens that it computes: one of each request, and drafted ones.
    pub requests: u64,
    pub tokens: u64,
    pub passes: u64,
    pub time: Duration,
    pub generated: u64,
}

/// The KV cache, in cells of one token each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kv {
    pub used: u64,
    pub total: u64,
    /// Cells per page; 0: no pages.
    pub page: u32,
    /// Since when the oldest cells have been in use.
    pub pinned: Option<Instant>,
    /// Number of cells just freed.
    pub freed: Option<u32>,
    /// How long the freed cells were in use.
    pub held: Option<Duration>,
}

/// A reading of a [`Host`] sample: a number, or the reason for its absence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    Measured(f64),
    /// Reported by a driver.
    Reported(f64),
    /// Computed from other values.
    Derived(f64),
    NotPermitted,
    NoDevice,
    NotYet,
    Undefined,
}

/// A sample of the machine. Names and units of readings are those of `host` in the protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host<'a> {
    /// Interval of the rates.
    pub interval: Duration,
    /// Utilisation of each core, 0..1.
    pub cores: &'a [f64],
    /// The limits are those of a control group.
    pub limited: bool,
    /// Why there is no GPU.
    pub no_gpu: &'a str,
    pub readings: &'a [(&'a str, Reading)],
    /// Readings of the engine's process.
    pub engine: &'a [(&'a str, Reading)],
    /// Name and readings of each GPU.
    pub gpus: &'a [(&'a str, &'a [(&'a str, Reading)])],
}

/// The phase in which router picks were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Prompt,
    Decode,
}

/// Statistics of all spans of one name in this process. They are complete even with slow readers or a full ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub count: u64,
    pub total: Duration,
    pub min: Duration,
    pub max: Duration,
    pub tokens: u64,
    /// Spans with [`Span::hit`], and those of them with a hit.
    pub lookups: u64,
    pub hits: u64,
}

impl Stats {
    /// Microseconds per span; `None` if there was none.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total.as_secs_f64() * 1e6 / self.count as f64)
    }

    /// Microseconds per token; `None` if there was none.
    pub fn us_per_token(&self) -> Option<f64> {
        (self.tokens > 0).then(|| self.total.as_secs_f64() * 1e6 / self.tokens as f64)
    }

    /// Fraction of lookups that hit, 0 to 1; `None` if there was none.
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.lookups > 0).then(|| self.hits as f64 / self.lookups as f64)
    }
}

// ---- control messages -----------------------------------------------------------------------------------------------

/// Handlers of control messages; `None` is not offered. They are called one after another on a separate thread and
/// should return soon. An `Err` is sent to the reader. Nothing is offered over TCP without a token, since every user of
/// the machine can reach the port. A handler that holds an [`Emitter`] keeps it open: use [`Emitter::close`] then.
#[derive(Default)]
pub struct Controls {
    /// Returns the id of the request.
    pub generate: Option<Control<Generation, u64>>,
    /// Ends a request.
    pub cancel: Option<Control<u64, ()>>,
    /// true: stop after the current forward pass; false: continue.
    pub pause: Option<Control<bool, ()>>,
    /// What to measure from now on.
    pub hooks: Option<Control<Hooks, ()>>,
    /// Count router picks in one of every N forward passes; the emitter reports N to the readers.
    pub sample: Option<Control<u32, ()>>,
}

/// A handler of a control message.
pub type Control<Input, Done> = Box<dyn FnMut(Input) -> Result<Done, String> + Send>;

/// What an engine measures; false is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Time per part and layer.
    pub stages: bool,
    /// Count router picks.
    pub experts: bool,
    /// Emit the picks of tokens.
    pub picks: bool,
}

/// The reader that gets the text of a request because it asked for it; none by default. No other reader gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextFor(u64); // the id of a reader; 0: none

impl TextFor {
    /// Whether a reader gets the text.
    pub fn any(self) -> bool {
        self.0 != 0
    }
}

/// A text to continue: `prompt` or `ids`. `None`: the engine's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generation {
    pub prompt: Option<String>,
    pub ids: Vec<u32>,
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
    pub top_k: Option<u64>,
    pub top_p: Option<f64>,
    pub min_p: Option<f64>,
    pub repeat_penalty: Option<f64>,
    pub seed: Option<u64>,
    pub ignore_eos: bool,
    /// Control tokens spelled out in the prompt become ids.
    pub special: bool,
    pub group: Option<String>,
    pub label: Option<String>,
    pub probe: bool,
    /// Pass this on as [`Request::text`].
    pub text: TextFor,
    /// Number of alternatives to emit with each token, [`Token::top`].
    pub top: u32,
    /// Emit [`Token::picks`].
    pub picks: bool,
}

enum Message {
    Generate(Box<Generation>),
    Cancel(u64),
    Pause(bool),
    Hooks(Hooks),
    Sample(u32),
}

impl Controls {
    fn offered(&self) -> [(&'static str, bool); 5] {
        [
            ("generate", self.generate.is_some()),
            ("cancel", self.cancel.is_some()),
            ("pause", self.pause.is_some()),
            ("hooks", self.hooks.is_some()),
            ("sample", self.sample.is_some()),
        ]
    }

    fn obey(&mut self, message: Message, shared: &Shared) -> Result<Option<u64>, String> {
        fn ask<Input, Done>(control: &mut Option<Control<Input, Done>>, input: Input) -> Result<Done, String> {
            control.as_mut().ok_or_else(|| "not offered".to_string()).and_then(|f| f(input))
        }
        match message {
            Message::Generate(g) => ask(&mut self.generate, *g).map(Some),
            Message::Cancel(r) => ask(&mut self.cancel, r).map(|()| None),
            Message::Pause(on) => ask(&mut self.pause, on).map(|()| None),
            Message::Hooks(on) => ask(&mut self.hooks, on).map(|()| None),
            Message::Sample(every) => {
                ask(&mut self.sample, every)?;
                shared.every.store(u64::from(every), Ordering::Relaxed);
                Ok(None)
            }
        }
    }
}

/// Answers control messages until the writer has ended.
fn obey(mut controls: Controls, messages: mpsc::Receiver<(u64, u64, Message)>, shared: Arc<Shared>) {
    for (reader, call, message) in messages {
        let answer = panic::catch_unwind(panic::AssertUnwindSafe(|| controls.obey(message, &shared)));
        let answer = answer.unwrap_or_else(|_| Err("the handler panicked".to_string()));
        shared.command(Command::Reply(reader, reply(call, answer)));
    }
}

fn reply(call: u64, answer: Result<Option<u64>, String>) -> Text {
    let mut line = Text::default();
    line.open("reply");
    line.member("c", call);
    line.raw(if answer.is_ok() { ",\"ok\":true" } else { ",\"ok\":false" });
    match answer {
        Ok(Some(request)) => line.member("r", request),
        Ok(None) => {}
        Err(why) => line.string("why", &why),
    }
    line.end();
    line
}

// ---- text -----------------------------------------------------------------------------------------------------------

const LONGEST_TEXT: usize = 64 << 10; // longest string of the protocol
const LONGEST_LINE: usize = 4 << 20;
const SHORT_TEXT: usize = 4 << 10; // for all strings but prompts

/// The first bytes of a text, without cutting a character.
fn cut(s: &str, most: usize) -> &str {
    if s.len() <= most {
        return s;
    }
    let mut end = most;
    while !s.is_char_boundary(end) {
        end -= 1;
    }
    &s[..end]
}

/// JSON lines being written.
#[derive(Clone, Default, PartialEq)]
struct Text(Vec<u8>);

impl Text {
    fn raw(&mut self, s: &str) {
        self.0.extend_from_slice(s.as_bytes());
    }

    fn uint(&mut self, mut v: u64) {
        let (mut digits, mut i) = ([0u8; 20], 20);
        loop {
            i -= 1;
            digits[i] = b'0' + (v % 10) as u8;
            v /= 10;
            if v == 0 {
                break;
            }
        }
        self.0.extend_from_slice(&digits[i..]);
    }

    fn int(&mut self, v: i64) {
        if v < 0 {
            self.0.push(b'-');
        }
        self.uint(v.unsigned_abs());
    }

    /// Numbers that JSON cannot represent become null.
    fn real(&mut self, v: f64) {
        if !v.is_finite() {
            return self.raw("null");
        }
        let size = v.abs();
        let _ = if v == 0.0 || (1e-5..1e15).contains(&size) { write!(self.0, "{v}") } else { write!(self.0, "{v:e}") };
    }

    fn real32(&mut self, v: f32) {
        if !v.is_finite() {
            return self.raw("null");
        }
        let _ = write!(self.0, "{v}"); // the shortest form that parses to the same f32
    }

    fn quote(&mut self, s: &str) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        self.0.push(b'"');
        for &c in s.as_bytes() {
            match c {
                b'"' | b'\\' => self.0.extend_from_slice(&[b'\\', c]),
                0..=0x1f | 0x7f => self.0.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[usize::from(c >> 4)], HEX[usize::from(c & 15)]]),
                _ => self.0.push(c),
            }
        }
        self.0.push(b'"');
    }

    /// The text of a token: an array of bytes if it is not UTF-8.
    fn piece(&mut self, s: &[u8]) {
        match std::str::from_utf8(s) {
            Ok(s) => self.quote(s),
            Err(_) => self.list(s.iter(), |t, &b| t.uint(u64::from(b))),
        }
    }

    fn list<T>(&mut self, values: impl Iterator<Item = T>, mut put: impl FnMut(&mut Text, T)) {
        self.0.push(b'[');
        for (i, v) in values.enumerate() {
            if i > 0 {
                self.0.push(b',');
            }
            put(self, v);
        }
        self.0.push(b']');
    }

    fn key(&mut self, name: &str) {
        self.raw(",\"");
        self.raw(name);
        self.raw("\":");
    }

    fn member(&mut self, name: &str, v: u64) {
        self.key(name);
        self.uint(v);
    }

    fn given(&mut self, name: &str, v: u64) {
        if v != ABSENT {
            self.member(name, v);
        }
    }

    fn given32(&mut self, name: &str, v: u32) {
        if v != ABSENT32 {
            self.member(name, u64::from(v));
        }
    }

    /// Omits an empty string.
    fn string(&mut self, name: &str, s: &str) {
        if !s.is_empty() {
            self.key(name);
            self.quote(cut(s, LONGEST_TEXT));
        }
    }

    /// Starts a line.
    fn open(&mut self, kind: &str) {
        self.raw("{\"t\":\"");
        self.raw(kind);
        self.raw("\"");
    }

    fn open_at(&mut self, kind: &str, at: u64) {
        self.open(kind);
        self.member("a", at);
    }

    fn end(&mut self) {
        self.raw("}\n");
    }
}

fn readings(t: &mut Text, list: &[(&str, Reading)]) {
    for &(name, reading) in list {
        let (v, mark) = match reading {
            Reading::Measured(v) => (v, ""),
            Reading::Reported(v) => (v, "reported"),
            Reading::Derived(v) => (v, "derived"),
            Reading::NotPermitted => (f64::NAN, "not permitted"),
            Reading::NoDevice => (f64::NAN, "no device"),
            Reading::NotYet => (f64::NAN, "not yet"),
            Reading::Undefined => (f64::NAN, "undefined"),
        };
        t.raw(",");
        t.quote(name);
        t.raw(":");
        match (v.is_finite(), mark) {
            (true, "") => t.real(v),
            (true, _) => {
                t.raw("[");
                t.real(v);
                t.raw(",");
                t.quote(mark);
                t.raw("]");
            }
            (false, "" | "reported" | "derived") => t.quote("undefined"),
            (false, why) => t.quote(why),
        }
    }
}

// ---- JSON from readers ----------------------------------------------------------------------------------------------

#[derive(Debug, PartialEq)]
enum Json<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(String),
    List(Vec<Json<'a>>),
    Object(Vec<(String, Json<'a>)>),
}

impl<'a> Json<'a> {
    const DEPTH: usize = 16;

    /// Parses a line that holds one value.
    fn parse(line: &'a str) -> Option<Json<'a>> {
        let mut p = Parser { s: line, at: 0 };
        let value = p.value(Json::DEPTH)?;
        p.space();
        (p.at == line.len()).then_some(value)
    }

    /// A member of an object; the last one if there are several. Null is absent.
    fn get(&self, name: &str) -> Option<&Json<'a>> {
        let Json::Object(members) = self else { return None };
        members.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v).filter(|v| **v != Json::Null)
    }

    fn real(&self) -> Option<f64> {
        let Json::Number(digits) = self else { return None };
        digits.parse().ok().filter(|v: &f64| v.is_finite())
    }

    /// A count: fractions are cut off, negative numbers are absent.
    fn uint(&self) -> Option<u64> {
        let Json::Number(digits) = self else { return None };
        digits.parse().ok().or_else(|| self.real().filter(|v| *v >= 0.0).map(|v| v as u64))
    }

    fn text(&self) -> Option<String> {
        match self {
            Json::Text(s) => Some(s.clone()),
            Json::List(bytes) => {
                let bytes: Option<Vec<u8>> = bytes.iter().map(|b| b.uint().and_then(|b| u8::try_from(b).ok())).collect();
                bytes.map(|b| String::from_utf8_lossy(&b).into_owned())
            }
            _ => None,
        }
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Json::Bool(true))
    }
}

struct Parser<'a> {
    s: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> u8 {
        self.s.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    /// Skips white space and the given character.
    fn take(&mut self, c: u8) -> bool {
        self.space();
        let found = self.peek() == c;
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Option<Json<'a>> {
        self.space();
        for (word, value) in [
            ("null", Json::Null),
            ("true", Json::Bool(true)),
            ("false", Json::Bool(false)),
            ("NaN", Json::Null),
            ("Infinity", Json::Null),
            ("-Infinity", Json::Null),
        ] {
            if self.s.as_bytes()[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Some(value);
            }
        }
        match self.peek() {
            b'"' => self.string().map(Json::Text),
            b'[' if depth > 0 => self.items(b']', |p| p.value(depth - 1)).map(Json::List),
            b'{' if depth > 0 => self.items(b'}', |p| p.member(depth - 1)).map(Json::Object),
            _ => self.number(),
        }
    }

    fn member(&mut self, depth: usize) -> Option<(String, Json<'a>)> {
        self.space();
        let name = self.string()?;
        if !self.take(b':') {
            return None;
        }
        Some((name, self.value(depth)?))
    }

    fn items<T>(&mut self, end: u8, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.at += 1;
        let mut items = Vec::new();
        if self.take(end) {
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            if self.take(end) {
                return Some(items);
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn digits(&mut self) -> bool {
        let from = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        self.at > from
    }

    fn number(&mut self) -> Option<Json<'a>> {
        let from = self.at;
        self.at += usize::from(self.peek() == b'-');
        let first = self.at;
        let mut good = self.digits() && (self.s.as_bytes()[first] != b'0' || self.at == first + 1);
        if self.peek() == b'.' {
            self.at += 1;
            good &= self.digits();
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), b'+' | b'-'));
            good &= self.digits();
        }
        good.then(|| Json::Number(&self.s[from..self.at]))
    }

    fn string(&mut self) -> Option<String> {
        if self.peek() != b'"' {
            return None;
        }
        self.at += 1;
        let mut text = String::new();
        loop {
            let from = self.at;
            while !matches!(self.peek(), 0..=0x1f | b'"' | b'\\') {
                self.at += 1;
            }
            text.push_str(&self.s[from..self.at]);
            match self.peek() {
                b'"' => {
                    self.at += 1;
                    return Some(text);
                }
                b'\\' => text.push(self.escape()?),
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        self.at += 2;
        Some(match *self.s.as_bytes().get(self.at - 1)? {
            c @ (b'"' | b'\\' | b'/') => char::from(c),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.hex()?;
                let mut code = high;
                if (0xd800..0xdc00).contains(&high) && self.s.as_bytes()[self.at..].starts_with(b"\\u") {
                    self.at += 2;
                    let low = self.hex()?;
                    code = if (0xdc00..0xe000).contains(&low) { 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00) } else { 0xfffd };
                }
                char::from_u32(code).unwrap_or('\u{fffd}') // half of a surrogate pair
            }
            _ => return None,
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.s.as_bytes().get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |v, &d| Some(v << 4 | char::from(d).to_digit(16)?))
    }
}

/// A line from a reader. `Err` is the reason to close the connection.
enum Line {
    Auth(Option<String>),
    /// The number of the message, and its request.
    Control(u64, &'static str, Message),
}

/// Parses a line from the reader with that id.
fn read_line(line: &[u8], reader: u64) -> Result<Line, &'static str> {
    const MALFORMED: &str = "malformed line";
    let text = std::str::from_utf8(line).map_err(|_| MALFORMED)?;
    let json = Json::parse(text).ok_or(MALFORMED)?;
    let Some(Json::Text(kind)) = json.get("t") else { return Err(MALFORMED) };
    if kind == "auth" {
        return Ok(Line::Auth(json.get("token").and_then(Json::text)));
    }
    let uint = |name: &str| json.get(name).and_then(Json::uint);
    let (name, message) = match kind.as_str() {
        "generate" => ("generate", Message::Generate(Box::new(generation(&json, reader)))),
        "cancel" => ("cancel", Message::Cancel(uint("r").ok_or(MALFORMED)?)),
        "pause" => ("pause", Message::Pause(true)),
        "resume" => ("pause", Message::Pause(false)),
        "hooks" => {
            let Some(Json::List(words)) = json.get("on") else { return Err(MALFORMED) };
            let on = |word: &str| words.iter().any(|w| matches!(w, Json::Text(t) if t == word));
            ("hooks", Message::Hooks(Hooks { stages: on("stages"), experts: on("experts"), picks: on("picks") }))
        }
        "sample" => ("sample", Message::Sample(uint("every").ok_or(MALFORMED)?.clamp(1, u64::from(u32::MAX)) as u32)),
        _ => return Err("unknown message"),
    };
    Ok(Line::Control(uint("c").ok_or(MALFORMED)?, name, message))
}

fn generation(json: &Json, reader: u64) -> Generation {
    let uint = |name: &str| json.get(name).and_then(Json::uint);
    let real = |name: &str| json.get(name).and_then(Json::real);
    let text = |name: &str| json.get(name).and_then(Json::text);
    let ids = match json.get("ids") {
        Some(Json::List(ids)) => ids.iter().filter_map(|id| id.uint().and_then(|id| u32::try_from(id).ok())).collect(),
        _ => Vec::new(),
    };
    Generation {
        prompt: text("prompt"),
        ids,
        max_tokens: uint("max"),
        temperature: real("temperature"),
        top_k: uint("top_k"),
        top_p: real("top_p"),
        min_p: real("min_p"),
        repeat_penalty: real("repeat_penalty"),
        seed: uint("seed"),
        ignore_eos: json.flag("ignore_eos"),
        special: json.flag("special"),
        group: text("group"),
        label: text("label"),
        probe: json.flag("probe"),
        text: if json.flag("text") { TextFor(reader) } else { TextFor::default() },
        top: uint("top").unwrap_or(0).min(255) as u32,
        picks: json.flag("picks"),
    }
}

/// Compares in a time that depends only on the length of the given token.
fn same_token(given: &[u8], token: &[u8]) -> bool {
    let mut differ = given.len() ^ token.len();
    for (i, &g) in given.iter().enumerate() {
        differ |= usize::from(g ^ token.get(i % token.len().max(1)).copied().unwrap_or_default());
    }
    std::hint::black_box(differ) == 0
}

// ---- the ring -------------------------------------------------------------------------------------------------------

const ABSENT: u64 = u64::MAX;
const ABSENT32: u32 = u32::MAX;
const SECOND: u64 = 1_000_000_000;
const OWN: usize = 64; // engine-specific counters
const NAMES: usize = 256; // stage names; the last one is OTHER

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Token,
    Queued,
    Dispatched,
    Ended,
    Stage,
    Step,
    Kv,
    Host,
    Engine,
    Model,
    Log,
    Ops,
    Draft,
    Usage,
}

impl What {
    const ALL: [What; 14] = [
        What::Token,
        What::Queued,
        What::Dispatched,
        What::Ended,
        What::Stage,
        What::Step,
        What::Kv,
        What::Host,
        What::Engine,
        What::Model,
        What::Log,
        What::Ops,
        What::Draft,
        What::Usage,
    ];

    fn kind(self) -> Kind {
        match self {
            What::Token => Kind::Token,
            What::Queued | What::Dispatched | What::Ended => Kind::Request,
            What::Stage => Kind::Stage,
            What::Step => Kind::Step,
            What::Kv => Kind::Kv,
            What::Host => Kind::Host,
            What::Engine => Kind::Engine,
            What::Model => Kind::Model,
            What::Log => Kind::Log,
            What::Ops => Kind::Ops,
            What::Draft => Kind::Speculation,
            What::Usage => Kind::Usage,
        }
    }

    /// The capability of an engine that emits it.
    fn cap(self) -> u32 {
        match self {
            What::Token => caps::TOKENS,
            What::Dispatched => caps::QUEUE,
            What::Stage => caps::STAGES,
            What::Step => caps::STEPS,
            What::Kv => caps::KV,
            What::Host => caps::HOST,
            What::Ops => caps::OPS,
            _ => 0,
        }
    }
}

/// An event as stored in a cell of the ring. Its payload of `length` bytes fills the following cells. The meaning of
/// the fields is described where each event is emitted.
#[derive(Clone, Copy)]
struct Event {
    what: What,
    flags: u8,
    small: u16,
    length: u32,
    id: u32,
    index: u32,
    at: u64,
    request: u64,
    x: [u64; 3],
}

impl Event {
    fn new(what: What, at: u64, request: u64) -> Event {
        Event { what, flags: 0, small: 0, length: 0, id: ABSENT32, index: ABSENT32, at, request, x: [ABSENT; 3] }
    }

    /// Number of cells that it uses.
    fn cells(&self) -> u64 {
        1 + u64::from(self.length).div_ceil(CELL)
    }

    fn words(&self) -> [u64; 7] {
        let head = self.what as u64 | u64::from(self.flags) << 8 | u64::from(self.small) << 16 | u64::from(self.length) << 32;
        [head, u64::from(self.id) | u64::from(self.index) << 32, self.at, self.request, self.x[0], self.x[1], self.x[2]]
    }

    fn of(w: [u64; 7]) -> Event {
        Event {
            what: What::ALL[w[0] as usize & 15],
            flags: (w[0] >> 8) as u8,
            small: (w[0] >> 16) as u16,
            length: (w[0] >> 32) as u32,
            id: w[1] as u32,
            index: (w[1] >> 32) as u32,
            at: w[2],
            request: w[3],
            x: [w[4], w[5], w[6]],
        }
    }
}

const CELL: u64 = 64; // bytes

/// Eight words; the first is the cell's position in the ring + 1 once its event is complete, 0 before.
#[repr(align(64))]
#[derive(Default)]
struct Cell([AtomicU64; 8]);

/// Separates frequently written values into their own cache lines.
#[repr(align(128))]
#[derive(Default)]
struct Apart(AtomicU64);

/// The ring between the threads of the engine and the writer. Its words are atomic, so that no unsafe code is needed;
/// they are stored and loaded with relaxed ordering. `used` counts cells that are claimed and not released: a cell is
/// claimed only if cells are free, so `tail` never reaches a cell that the writer has not read.
struct Ring {
    used: Apart,
    tail: Apart,
    dropped: [AtomicU64; KINDS.len()],
    cells: Box<[Cell]>,
}

impl Ring {
    fn new(cells: usize) -> Ring {
        let cells = cells.clamp(64, 1 << 22).next_power_of_two();
        Ring {
            used: Apart::default(),
            tail: Apart::default(),
            dropped: Default::default(),
            cells: (0..cells).map(|_| Cell::default()).collect(),
        }
    }

    fn cell(&self, position: u64) -> &Cell {
        &self.cells[position as usize & (self.cells.len() - 1)]
    }

    /// Maximum size of a payload in bytes.
    fn most(&self) -> usize {
        self.cells.len() * CELL as usize / 8
    }

    fn drop_event(&self, kind: Kind) {
        self.dropped[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds an event whose payload `fill` writes. Returns whether there was space. An eighth of the ring is reserved for
    /// request events: without them, the state would stay wrong for long.
    fn push(&self, e: &Event, fill: impl FnOnce(&mut Filler)) -> bool {
        let (kind, cells, all) = (e.what.kind(), e.cells(), self.cells.len() as u64);
        let limit = if kind == Kind::Request { all } else { all - all / 8 };
        if self.used.0.fetch_add(cells, Ordering::AcqRel) + cells > limit {
            self.used.0.fetch_sub(cells, Ordering::Relaxed);
            self.drop_event(kind);
            return false;
        }
        let at = self.tail.0.fetch_add(cells, Ordering::AcqRel);
        let cell = self.cell(at);
        for (word, v) in cell.0[1..].iter().zip(e.words()) {
            word.store(v, Ordering::Relaxed);
        }
        if e.length > 0 {
            let mut filler = Filler { ring: self, word: (at + 1) * 8, pending: 0, held: 0 };
            fill(&mut filler);
            filler.put();
        }
        cell.0[0].store(at + 1, Ordering::Release);
        true
    }

    /// Reads the event at a position and its payload, if it is complete. The caller must release the cells.
    fn read(&self, at: u64, payload: &mut Vec<u8>) -> Option<Event> {
        let cell = self.cell(at);
        if cell.0[0].load(Ordering::Acquire) != at + 1 {
            return None;
        }
        let mut words = [0; 7];
        for (v, word) in words.iter_mut().zip(&cell.0[1..]) {
            *v = word.load(Ordering::Relaxed);
        }
        cell.0[0].store(0, Ordering::Relaxed);
        let e = Event::of(words);
        payload.clear();
        for position in at + 1..at + e.cells() {
            let cell = self.cell(position);
            for word in &cell.0 {
                payload.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            cell.0[0].store(0, Ordering::Relaxed); // payload must not look like a position
        }
        payload.truncate(e.length as usize);
        Some(e)
    }

    fn give_back(&self, cells: u64) {
        self.used.0.fetch_sub(cells, Ordering::Release);
    }
}

/// Writes bytes into the words of a payload.
struct Filler<'a> {
    ring: &'a Ring,
    word: u64,
    pending: u64,
    held: usize, // bytes in pending
}

impl Filler<'_> {
    fn bytes(&mut self, mut b: &[u8]) {
        while !b.is_empty() {
            let n = b.len().min(8 - self.held);
            let mut word = [0; 8];
            word[..n].copy_from_slice(&b[..n]);
            self.pending |= u64::from_le_bytes(word) << (8 * self.held);
            self.held += n;
            b = &b[n..];
            if self.held == 8 {
                self.put();
            }
        }
    }

    fn put(&mut self) {
        if self.held > 0 {
            self.ring.cell(self.word / 8).0[self.word as usize % 8].store(self.pending, Ordering::Relaxed);
            self.word += 1;
            self.pending = 0;
            self.held = 0;
        }
    }
}

// ---- counters and statistics ----------------------------------------------------------------------------------------

const COUNTERS: [&str; 10] = [
    "requests_queued",
    "requests_finished",
    "requests_cancelled",
    "requests_failed",
    "prompt_tokens",
    "cached_tokens",
    "generated_tokens",
    "tokenizer_tokens",
    "cache_lookups",
    "cache_hits",
];
const PROMPT_TOKENS: usize = 4;
const CACHED_TOKENS: usize = 5;
const GENERATED_TOKENS: usize = 6;
const TOKENIZER_TOKENS: usize = 7;
const CACHE_LOOKUPS: usize = 8;
const CACHE_HITS: usize = 9;

/// A counter, or a value that is set; initially not reported.
#[derive(Default)]
struct Count {
    value: AtomicU64,
    form: AtomicU8, // 0: not reported, 1: integer, 2: real
}

impl Count {
    fn add(&self, n: u64) {
        match self.form.load(Ordering::Relaxed) {
            0 => self.form.store(1, Ordering::Relaxed),
            1 => {}
            _ => return,
        }
        self.value.fetch_add(n, Ordering::Relaxed);
    }

    fn set(&self, v: f64) {
        self.form.store(2, Ordering::Relaxed);
        self.value.store(v.to_bits(), Ordering::Relaxed);
    }

    fn get(&self) -> Option<f64> {
        let form = self.form.load(Ordering::Relaxed);
        let value = self.value.load(Ordering::Relaxed);
        match form {
            0 => None,
            1 => Some(value as f64),
            _ => Some(f64::from_bits(value)).filter(|v| v.is_finite()),
        }
    }
}

/// A stage name, with the statistics of its spans.
#[derive(Default)]
struct Name {
    name: OnceLock<Box<str>>,
    count: AtomicU64,
    total: AtomicU64, // ns
    min: AtomicU64,   // ns; initially ABSENT
    max: AtomicU64,   // ns
    tokens: AtomicU64,
    lookups: AtomicU64,
    hits: AtomicU64,
}

impl Name {
    fn note(&self, ns: u64, tokens: u64, hit: Option<bool>) {
        self.total.fetch_add(ns, Ordering::Relaxed);
        if ns < self.min.load(Ordering::Relaxed) {
            self.min.fetch_min(ns, Ordering::Relaxed);
        }
        if ns > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(ns, Ordering::Relaxed);
        }
        if tokens > 0 {
            self.tokens.fetch_add(tokens, Ordering::Relaxed);
        }
        if let Some(hit) = hit {
            self.lookups.fetch_add(1, Ordering::Relaxed);
            self.hits.fetch_add(u64::from(hit), Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Release); // released last, so that readers of the count see the other values
    }

    fn stats(&self) -> Option<Stats> {
        let get = |v: &AtomicU64| v.load(Ordering::Relaxed);
        let count = self.count.load(Ordering::Acquire);
        (count > 0).then(|| Stats {
            count,
            total: Duration::from_nanos(get(&self.total)),
            min: Duration::from_nanos(get(&self.min)),
            max: Duration::from_nanos(get(&self.max)),
            tokens: get(&self.tokens),
            lookups: get(&self.lookups),
            hits: get(&self.hits),
        })
    }
}

/// The stage names: a hash table that only grows.
struct Names(Box<[Name]>);

impl Names {
    fn new() -> Names {
        let names: Box<[Name]> = (0..NAMES).map(|_| Name { min: AtomicU64::new(ABSENT), ..Name::default() }).collect();
        let _ = names[NAMES - 1].name.set(stage::OTHER.into());
        Names(names)
    }

    fn slots(name: &str) -> impl Iterator<Item = usize> {
        let mut hash = name.len() as u64;
        for chunk in name.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        (0..NAMES - 1).map(move |i| ((hash >> 32) as usize + i) % (NAMES - 1))
    }

    fn find(&self, name: &str) -> Option<usize> {
        for slot in Names::slots(name) {
            if **self.0[slot].name.get()? == *name {
                return Some(slot);
            }
        }
        None
    }

    /// The index of a name. Its first use allocates.
    fn place(&self, name: &str) -> usize {
        let name = cut(name, 64);
        if name.is_empty() {
            return NAMES - 1;
        }
        let own = Names::slots(name).find(|&slot| **self.0[slot].name.get_or_init(|| name.into()) == *name);
        own.unwrap_or(NAMES - 1)
    }

    fn name(&self, place: usize) -> &str {
        self.0[place].name.get().map_or(stage::OTHER, |n| n)
    }
}

/// The table of router picks: phase, layer, expert; cumulative since the model was loaded.
#[derive(Default)]
struct Picks {
    layers: usize,
    experts: usize,
    used: usize,
    counts: Box<[AtomicU64]>,
}

impl Picks {
    fn of(model: Option<&Model>) -> Picks {
        let (layers, experts) = model.map_or((0, 0), |m| (m.layers.min(512) as usize, m.experts.min(4096) as usize));
        let used = model.map_or(0, |m| m.experts_used as usize);
        if experts == 0 || layers == 0 {
            return Picks::default();
        }
        Picks { layers, experts, used, counts: (0..2 * layers * experts).map(|_| AtomicU64::new(0)).collect() }
    }

    fn row(&self, phase: Phase, layer: usize) -> &[AtomicU64] {
        if layer >= self.layers {
            return &[];
        }
        let from = (phase as usize * self.layers + layer) * self.experts;
        &self.counts[from..from + self.experts]
    }
}

// ---- the emitter ----------------------------------------------------------------------------------------------------

/// State shared by the threads of the engine and the writer.
struct Shared {
    ring: Ring,
    counts: [Count; COUNTERS.len()],
    tokenizer_ns: AtomicU64,
    own: Box<[Count]>, // OWN, and one that is not sent
    own_names: Mutex<Vec<String>>,
    names: Names,
    steps: AtomicU64,      // numbers of passes given so far
    sampled: AtomicBool,   // sample_host was called
    tokenizer: [usize; 4], // indexes of tokenize, the two of streams, cache_lookup
    picks: RwLock<Picks>,
    every: AtomicU64,  // sampling interval of picks, in passes
    wanted: AtomicU64, // live requests whose text a reader wants although text is off
    text: bool,
    closed: AtomicBool,
    start: Instant,
    address: String,
    commands: Mutex<mpsc::Sender<Command>>,
}

/// A command to the writer.
enum Command {
    Reply(u64, Text),
    Csv(PathBuf, u64, mpsc::Sender<io::Result<Flushed>>),
    Close(String),
}

/// Result of [`Emitter::csv`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flushed {
    pub rows: u64,
    /// Stages that are not in the rows, because there was no space.
    pub missing: u64,
}

fn hold<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn stamp(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.start))
    }

    fn now(&self) -> u64 {
        nanos(self.start.elapsed())
    }

    fn emit(&self, e: &Event, fill: impl FnOnce(&mut Filler)) -> bool {
        !self.closed.load(Ordering::Relaxed) && self.ring.push(e, fill)
    }

    fn emit_text(&self, e: &mut Event, text: &[u8]) {
        e.length = text.len().min(u32::MAX as usize) as u32;
        self.emit(e, |f| f.bytes(text));
    }

    fn command(&self, command: Command) {
        let _ = hold(&self.commands).send(command); // if the writer has ended, there is nobody to inform
    }

    /// A stage stores the index of its name in small, layer in id, duration in x[0], tokens in x[1].
    #[allow(clippy::too_many_arguments)]
    fn stage(&self, request: u64, place: usize, layer: u32, at: Instant, took: u64, tokens: u64, hit: Option<bool>) {
        let mut e = Event::new(What::Stage, self.stamp(at), request);
        e.small = place as u16;
        e.id = layer;
        e.x = [took, tokens, ABSENT];
        self.emit(&e, |_| {});
        self.names.0[place].note(took, tokens, hit);
        let [tokenize, stream_start, stream_next, lookup] = self.tokenizer;
        if (place == tokenize && tokens > 0) || place == stream_start || place == stream_next {
            self.tokenizer_ns.fetch_add(took, Ordering::Relaxed);
            self.counts[TOKENIZER_TOKENS].add(tokens);
        } else if place == lookup && hit.is_some() {
            self.counts[CACHE_LOOKUPS].add(1);
            self.counts[CACHE_HITS].add(u64::from(hit == Some(true)));
        }
    }

    /// A token stores the length of its text in small; step, sampling time, and count and logprob in x; the number of
    /// alternatives in flags. Its payload is text, alternatives, picks.
    fn token(&self, t: &Token, now: u64) {
        let text = if self.text || self.wanted.load(Ordering::Relaxed) > 0 { &t.text[..t.text.len().min(SHORT_TEXT)] } else { &[] };
        let top = &t.top[..t.top.len().min(255)];
        let mut e = Event::new(What::Token, t.at.map_or(now, |at| self.stamp(at)), t.request);
        e.id = t.id.unwrap_or(ABSENT32);
        e.index = t.index.unwrap_or(ABSENT32);
        e.small = text.len() as u16;
        e.flags = top.len() as u8;
        e.length = (text.len() + 8 * top.len() + 2 * t.picks.len()) as u32;
        let count = t.count.max(1);
        e.x = [t.step, t.sampling.map_or(ABSENT, nanos), u64::from(count) | u64::from(t.logprob.unwrap_or(f32::NAN).to_bits()) << 32];
        self.emit(&e, |f| {
            f.bytes(text);
            for (id, logprob) in top {
                f.bytes(&id.to_le_bytes());
                f.bytes(&logprob.to_le_bytes());
            }
            for expert in t.picks {
                f.bytes(&expert.to_le_bytes());
            }
        });
        self.counts[GENERATED_TOKENS].add(u64::from(count));
    }
}

fn nanos(d: Duration) -> u64 {
    d.as_secs().wrapping_mul(SECOND).wrapping_add(u64::from(d.subsec_nanos()))
}

/// An open event socket. It closes when the last clone is dropped, or with [`Emitter::close`].
#[derive(Clone)]
pub struct Emitter {
    shared: Arc<Shared>,
    closer: Arc<Closer>,
}

struct Closer {
    shared: Arc<Shared>,
    writer: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Closer {
    fn close(&self, why: &str) {
        if let Some(writer) = hold(&self.writer).take() {
            self.shared.closed.store(true, Ordering::Relaxed);
            self.shared.command(Command::Close(why.to_string()));
            let _ = writer.join();
        }
    }
}

impl Drop for Closer {
    fn drop(&mut self) {
        self.close("the engine has ended");
    }
}

impl Emitter {
    /// Opens the socket and starts the writer thread. If a live engine holds the socket, the error contains its pid;
    /// the socket of an engine that has exited is replaced.
    pub fn open(options: Options) -> io::Result<Emitter> {
        if options.name.is_empty() {
            return Err(fail(io::ErrorKind::InvalidInput, "Options::name is missing"));
        }
        if options.token.as_deref() == Some("") {
            return Err(fail(io::ErrorKind::InvalidInput, "the token is empty"));
        }
        let (listener, address, place) = listen(&options)?;
        let names = Names::new();
        let tokenizer =
            [stage::TOKENIZE, stage::ENCODE_STREAM_START, stage::ENCODE_STREAM_NEXT, stage::CACHE_LOOKUP].map(|n| names.place(n));
        let (sender, commands) = mpsc::channel();
        let shared = Arc::new(Shared {
            ring: Ring::new(options.ring),
            counts: Default::default(),
            tokenizer_ns: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            sampled: AtomicBool::new(false),
            own: (0..=OWN).map(|_| Count::default()).collect(),
            own_names: Mutex::new(Vec::new()),
            names,
            tokenizer,
            picks: RwLock::new(Picks::of(options.model.as_ref())),
            every: AtomicU64::new(1),
            wanted: AtomicU64::new(0),
            text: options.text,
            closed: AtomicBool::new(false),
            start: Instant::now(),
            address,
            commands: Mutex::new(sender),
        });
        let writer = Writer::new(shared.clone(), listener, place, commands, options)?;
        let thread = thread::Builder::new().name("llmtop".into()).spawn(move || writer.run())?;
        let closer = Closer { shared: shared.clone(), writer: Mutex::new(Some(thread)) };
        Ok(Emitter { shared, closer: Arc::new(closer) })
    }

    /// Writes remaining events for at most half a second, sends bye to the readers and removes the socket. Events that
    /// are emitted later, also by clones, are discarded.
    pub fn close(self) {
        self.closer.close("the engine has ended");
    }

    /// The address, in the form of `llmtop attach`.
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    /// Number of events of a kind that did not fit in the ring. Drops of slow readers are reported to those readers.
    pub fn dropped(&self, kind: Kind) -> u64 {
        self.shared.ring.dropped[kind as usize].load(Ordering::Relaxed)
    }

    /// The state of the engine: starting, loading, ready, failed, stopped or paused; why may be empty.
    pub fn state(&self, state: &str, why: &str) {
        let mut members = Text::default();
        members.string("state", cut(state, SHORT_TEXT));
        members.string("why", cut(why, SHORT_TEXT));
        self.shared.emit_text(&mut Event::new(What::Engine, self.shared.now(), 0), &members.0);
    }

    /// Reports that a model has been loaded, from `began` on. The counts of router picks restart. The event stores the
    /// duration in x[0].
    pub fn loaded(&self, model: &Model, began: Option<Instant>) {
        let mut e = Event::new(What::Model, self.shared.now(), 0);
        e.x[0] = began.map_or(ABSENT, |b| nanos(b.elapsed()));
        *self.shared.picks.write().unwrap_or_else(PoisonError::into_inner) = Picks::of(Some(model));
        self.shared.emit_text(&mut e, &model_members(model).0);
    }

    /// A request has arrived. max_tokens is in x[0], the lengths of group, label and name in x[1], the reader that gets
    /// its text in x[2].
    pub fn queued(&self, request: u64, what: &Request) {
        if request == 0 {
            return;
        }
        let s = &self.shared;
        let short = [what.group, what.label, what.name].map(|text| cut(text, 1024));
        let reader = if s.text { 0 } else { what.text.0 };
        let prompt = if reader != 0 || s.text { cut(what.prompt, LONGEST_TEXT.min(s.ring.most())) } else { "" };
        let mut e = Event::new(What::Queued, s.now(), request);
        e.flags = u8::from(what.cold) | u8::from(what.probe) << 1;
        e.x[0] = what.max_tokens.unwrap_or(ABSENT);
        e.id = what.prompt_tokens.unwrap_or(ABSENT32);
        e.x[2] = reader;
        e.x[1] = short.iter().rev().fold(0, |lengths, text| lengths << 16 | text.len() as u64);
        e.length = (short.iter().map(|text| text.len()).sum::<usize>() + prompt.len()) as u32;
        s.wanted.fetch_add(u64::from(reader != 0), Ordering::Relaxed);
        let fits = s.emit(&e, |f| short.iter().chain([&prompt]).for_each(|text| f.bytes(text.as_bytes())));
        if reader != 0 && !fits {
            s.wanted.fetch_sub(1, Ordering::Relaxed);
        }
        s.counts[0].add(1);
    }

    /// The scheduler has started a request.
    pub fn dispatched(&self, request: u64) {
        if request != 0 {
            self.shared.emit(&Event::new(What::Dispatched, self.shared.now(), request), |_| {});
        }
    }

    /// A request has finished; why: stop (the model ended the text) or length.
    pub fn finished(&self, request: u64, why: &str, usage: &Usage) {
        self.ended(request, 0, why, usage);
    }

    /// A request was cancelled.
    pub fn cancelled(&self, request: u64, usage: &Usage) {
        self.ended(request, 1, "cancelled", usage);
    }

    /// A request has failed; why: the cause.
    pub fn failed(&self, request: u64, why: &str, usage: &Usage) {
        self.ended(request, 2, why, usage);
    }

    /// The outcome is in id, pad in index, the other numbers in x, the length of the reason in small; the payload is the
    /// reason and, with flag 1, the earlier request, the place, and why no more was reused.
    fn ended(&self, request: u64, outcome: u32, why: &str, usage: &Usage) {
        if request == 0 {
            return;
        }
        let s = &self.shared;
        let mut e = Event::new(What::Ended, s.now(), request);
        e.id = outcome;
        e.index = usage.pad.unwrap_or(ABSENT32);
        e.x = [usage.prompt, usage.cached, usage.generated].map(|n| n.unwrap_or(ABSENT));
        let (why, more) = (cut(why, 1024), cut(usage.reuse_why, 1024));
        e.small = why.len() as u16;
        e.flags = u8::from(usage.reuse != 0 || !more.is_empty());
        e.length = (why.len() + usize::from(e.flags) * (16 + more.len())) as u32;
        s.emit(&e, |f| {
            f.bytes(why.as_bytes());
            if e.flags != 0 {
                f.bytes(&usage.reuse.to_le_bytes());
                f.bytes(&usage.reuse_at.to_le_bytes());
                f.bytes(more.as_bytes());
            }
        });
        s.counts[1 + outcome as usize].add(1);
        for (counter, n) in [(PROMPT_TOKENS, usage.prompt), (CACHED_TOKENS, usage.cached)] {
            if let Some(n) = n {
                s.counts[counter].add(n);
            }
        }
    }

    /// Emits one token now: position in the generated text from 0, and id.
    pub fn token(&self, request: u64, index: u32, id: u32) {
        self.tokens(&[Token { request, index: Some(index), id: Some(id), ..Token::default() }]);
    }

    /// Emits tokens with more data, or those of a forward pass. All without a time get the same stamp.
    pub fn tokens(&self, tokens: &[Token]) {
        let now = self.shared.now();
        for token in tokens.iter().filter(|t| t.request != 0) {
            self.shared.token(token, now);
        }
    }

    /// A scoped timer: a stage of a request, from now until it is dropped.
    pub fn span(&self, request: u64, name: &str) -> Span<'_> {
        let place = self.shared.names.place(name);
        Span { top: self, request, place, layer: ABSENT32, tokens: 0, hit: None, live: true, began: Instant::now() }
    }

    /// A span of the call that begins to encode a text in pieces.
    pub fn encode_stream_start(&self, request: u64) -> Span<'_> {
        self.span(request, stage::ENCODE_STREAM_START)
    }

    /// A span of the call that encodes the next piece of a text. Set the number of its tokens with [`Span::tokens`]. If
    /// a span of [`stage::TOKENIZE`] encloses such calls, do not set its tokens, so that they are not counted twice.
    pub fn encode_stream_next(&self, request: u64) -> Span<'_> {
        self.span(request, stage::ENCODE_STREAM_NEXT)
    }

    /// A span of a cache lookup. Set its result with [`Span::hit`].
    pub fn cache_lookup(&self, request: u64) -> Span<'_> {
        self.span(request, stage::CACHE_LOOKUP)
    }

    /// A stage that ends now and started at `began`, perhaps on another thread; tokens 0: not reported.
    pub fn stage(&self, request: u64, name: &str, layer: Option<u32>, began: Instant, tokens: u64) {
        let now = Instant::now();
        let took = nanos(now.saturating_duration_since(began));
        self.shared.stage(request, self.shared.names.place(name), layer.unwrap_or(ABSENT32), now, took, tokens, None);
    }

    /// Statistics of the spans of a name in this process; `None` if there was none.
    pub fn stats(&self, name: &str) -> Option<Stats> {
        self.shared.names.find(cut(name, 64)).and_then(|place| self.shared.names.0[place].stats())
    }

    /// Statistics of all spans, by name.
    pub fn all_stats(&self) -> BTreeMap<String, Stats> {
        let names = &self.shared.names;
        (0..NAMES).filter_map(|place| Some((names.name(place).to_string(), names.0[place].stats()?))).collect()
    }

    /// A forward pass that ends now. Its number is in request, decode and prompt tokens in id and index, duration in
    /// x[0]; flag 1: the payload starts with a split.
    pub fn step(&self, pass: &Step) {
        self.step_at(pass, Instant::now());
    }

    /// Begins a forward pass. request: that for which it works, 0 if for several. Then the time of a pass over prompt
    /// tokens is that request's prompt stage. decode, prompt: tokens in the batch.
    pub fn step_begin(&self, request: u64, decode: Option<u32>, prompt: Option<u32>) -> Forward<'_> {
        let number = self.shared.steps.fetch_add(1, Ordering::Relaxed) + 1;
        let (body, parts) = (StdCell::new(None), Default::default());
        Forward { top: self, request, number, decode, prompt, began: Instant::now(), body, parts }
    }

    fn step_at(&self, pass: &Step, now: Instant) {
        let mut e = Event::new(What::Step, self.shared.stamp(now), pass.number);
        e.id = pass.decode.unwrap_or(ABSENT32);
        e.index = pass.prompt.unwrap_or(ABSENT32);
        e.x[0] = nanos(now.saturating_duration_since(pass.began));
        e.flags = u8::from(pass.split.is_some());
        let metrics = if pass.metrics.len() <= SHORT_TEXT { pass.metrics } else { "" };
        e.length = (24 * usize::from(e.flags) + metrics.len()) as u32;
        self.shared.emit(&e, |f| {
            for part in pass.split.iter().flatten() {
                f.bytes(&part.to_le_bytes());
            }
            f.bytes(metrics.as_bytes());
        });
    }

    /// The KV cache. Its page is in id, freed cells in index, used, total and pinned in x, held in request.
    pub fn kv(&self, cells: &Kv) {
        let s = &self.shared;
        let mut e = Event::new(What::Kv, s.now(), cells.held.map_or(ABSENT, nanos));
        e.id = if cells.page > 0 { cells.page } else { ABSENT32 };
        e.index = cells.freed.unwrap_or(ABSENT32);
        e.x = [cells.used, cells.total, cells.pinned.map_or(ABSENT, |at| s.stamp(at))];
        s.emit(&e, |_| {});
    }

    /// Adds router picks of a layer to the table, which is sent ten times a second. Its size is that of the model in
    /// [`Options`] or [`Emitter::loaded`]. Indexes outside are ignored, and so are picks while another model is being
    /// reported.
    pub fn picks(&self, phase: Phase, layer: usize, experts: &[u16]) {
        if let Ok(table) = self.shared.picks.try_read() {
            let row = table.row(phase, layer);
            for count in experts.iter().filter_map(|&e| row.get(usize::from(e))) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// For an engine that counts picks itself: cumulative picks of all experts of a layer.
    pub fn picks_total(&self, phase: Phase, layer: usize, counts: &[u64]) {
        if let Ok(table) = self.shared.picks.try_read() {
            for (count, &n) in table.row(phase, layer).iter().zip(counts) {
                count.store(n, Ordering::Relaxed);
            }
        }
    }

    /// An engine-specific counter, sent four times a second if changed. A name of the protocol replaces the counter
    /// kept here. There may be 64; more are not sent.
    pub fn counter(&self, name: &str) -> Counter {
        let name = cut(name, SHORT_TEXT);
        let mut names = hold(&self.shared.own_names);
        let place = match names.iter().position(|n| n == name) {
            Some(place) => place,
            None if names.len() < OWN => {
                names.push(name.to_string());
                names.len() - 1
            }
            None => OWN,
        };
        Counter { shared: self.shared.clone(), place }
    }

    /// Times of operations in passes forward passes, cumulative, the longest first; at most 4096. slowdown: time of a
    /// timed pass / time of one that is not timed.
    pub fn ops(&self, passes: u64, ops: &[Op], slowdown: Option<f64>) {
        let mut names: Vec<&str> = Vec::new();
        let mut rows: Vec<(usize, &Op)> = Vec::new();
        for op in ops.iter().take(4096) {
            let place = names.iter().position(|n| *n == op.name).unwrap_or(names.len());
            if place == names.len() && place < 256 {
                names.push(op.name);
            }
            if place < 256 {
                rows.push((place, op));
            }
        }
        let mut t = Text::default();
        t.member("passes", passes.max(1));
        if let Some(slowdown) = slowdown {
            readings(&mut t, &[("slowdown", Reading::Derived(slowdown))]);
        }
        t.key("ops");
        t.list(names.iter(), |t, n| t.quote(cut(n, 1024)));
        t.key("k");
        t.list(rows.iter(), |t, (place, _)| t.uint(*place as u64));
        t.key("l");
        t.list(rows.iter(), |t, (_, op)| t.int(op.layer.map_or(-1, i64::from)));
        t.key("n");
        t.list(rows.iter(), |t, (_, op)| t.uint(op.calls));
        t.key("d");
        t.list(rows.iter(), |t, (_, op)| t.uint(nanos(op.time)));
        self.shared.emit_text(&mut Event::new(What::Ops, self.shared.now(), 0), &t.0);
    }

    /// Speculative decoding, cumulative: drafted tokens, and those of them that were accepted, by position in the draft;
    /// the time in which drafts were computed; and the shapes of decode passes.
    pub fn draft(&self, drafted: &[u64], accepted: &[u64], time: Duration, shapes: &[Shape]) {
        let mut t = Text::default();
        for (name, list) in [("drafted", drafted), ("accepted", accepted)] {
            t.key(name);
            t.list(list.iter().take(64), |t, &n| t.uint(n));
        }
        t.member("time", nanos(time));
        let columns: [(&str, fn(&Shape) -> u64); 6] = [
            ("s", |s| u64::from(s.drafts)),
            ("r", |s| s.requests),
            ("n", |s| s.tokens),
            ("p", |s| s.passes),
            ("d", |s| nanos(s.time)),
            ("k", |s| s.generated),
        ];
        for (name, get) in columns {
            t.key(name);
            t.list(shapes.iter().take(256), |t, s| t.uint(get(s)));
        }
        self.shared.emit_text(&mut Event::new(What::Draft, self.shared.now(), 0), &t.0);
    }

    /// What the engine's threads did in the last interval: readings with the names of the protocol's usage.
    pub fn usage(&self, interval: Duration, list: &[(&str, Reading)]) {
        let mut t = Text::default();
        t.member("interval", nanos(interval));
        readings(&mut t, list);
        self.shared.emit_text(&mut Event::new(What::Usage, self.shared.now(), 0), &t.0);
    }

    /// Samples the machine and this process once a second from now on, from /proc. For engines on another machine:
    /// llmtop samples engines on its own. Linux only.
    pub fn sample_host(&self) {
        self.shared.sampled.store(true, Ordering::Relaxed);
    }

    /// A sample of the machine.
    pub fn host(&self, sample: &Host) {
        self.shared.emit_text(&mut Event::new(What::Host, self.shared.now(), 0), &host_members(sample).0);
    }

    /// One line of the engine log, at most 4 KiB.
    pub fn log(&self, line: &str) {
        let line = cut(line, SHORT_TEXT).trim_end_matches(['\n', '\r']);
        self.shared.emit_text(&mut Event::new(What::Log, self.shared.now(), 0), line.as_bytes());
    }

    /// Writes CSV with the columns stage,elapsed_us: the engine's stages, then the stages of each request, summed over
    /// layers and repetitions, in the order in which requests ended. Waits until earlier events are processed. Requires
    /// [`Options::csv`].
    pub fn csv(&self, path: impl AsRef<Path>) -> io::Result<Flushed> {
        let gone = || io::Error::new(io::ErrorKind::NotConnected, "flush stages: the event socket is closed");
        let (answer, answers) = mpsc::channel();
        let after = self.shared.ring.tail.0.load(Ordering::Acquire);
        self.shared.command(Command::Csv(path.as_ref().to_path_buf(), after, answer));
        answers.recv().map_err(|_| gone())?
    }
}

/// A scoped timer. It becomes a stage when it is dropped.
#[must_use = "a span ends when it is dropped"]
pub struct Span<'a> {
    top: &'a Emitter,
    request: u64,
    place: usize,
    layer: u32,
    tokens: u64,
    hit: Option<bool>,
    live: bool,
    began: Instant,
}

impl Span<'_> {
    /// Sets the layer of the span, from 0.
    pub fn layer(mut self, layer: u32) -> Self {
        self.layer = layer;
        self
    }

    /// Sets the number of tokens that it covers.
    pub fn tokens(&mut self, n: u64) {
        self.tokens = n;
    }

    /// Sets whether a lookup was a hit.
    pub fn hit(&mut self, hit: bool) {
        self.hit = Some(hit);
    }

    /// Ends it before its scope does.
    pub fn end(self) {}

    /// Discards the span: no stage is emitted.
    pub fn discard(mut self) {
        self.live = false;
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        if self.live {
            let now = Instant::now();
            let took = nanos(now.saturating_duration_since(self.began));
            self.top.shared.stage(self.request, self.place, self.layer, now, took, self.tokens, self.hit);
        }
    }
}

/// An engine-specific counter: a total that is added to, or a value that is set.
#[derive(Clone)]
pub struct Counter {
    shared: Arc<Shared>,
    place: usize,
}

impl Counter {
    /// Adds to a total; it has no effect on a counter that has been set.
    pub fn add(&self, n: u64) {
        self.shared.own[self.place].add(n);
    }

    /// Sets a value, such as an average.
    pub fn set(&self, v: f64) {
        self.shared.own[self.place].set(v);
    }
}

// ---- the state for late joiners -------------------------------------------------------------------------------------

const LIVE: usize = 4096; // requests in the state for late joiners; the oldest are evicted
const SUMS: usize = 512; // stages of a request: a name and a layer each
const ROWS: usize = 1 << 16; // rows of the CSV

/// The stages of a name and a layer.
#[derive(Clone, Copy)]
struct Sum {
    place: u16,
    layer: u32,
    at: u64, // the last end
    took: u64,
    tokens: u64,
}

/// A request that has not ended.
#[derive(Default)]
struct Live {
    id: u64,
    queued: Option<u64>,
    dispatched: Option<u64>,
    what: Text,           // members of its queued line
    prompt: Text,         // the member with its prompt, if only one reader gets it
    reader: u64,          // the reader that gets its text; 0: none, or all
    first: Option<Event>, // its first token
    last_at: u64,
    tokens: u64,
    sums: Vec<Sum>,
}

#[derive(Default)]
struct State {
    live: BTreeMap<u64, Live>, // in order of arrival
    place: HashMap<u64, u64>,  // position in that order, by id
    arrived: u64,
    requests_reported: bool, // the engine reports start and end of requests
    own: Vec<Sum>,
    kv: Option<Event>,
    model: Text, // members, including those of hello
    model_at: Option<u64>,
    engine: Text, // members that change
    engine_at: Option<u64>,
    experts: Text, // the latest lines
    counters: Text,
    host: Text,
    ops: Text,
    draft: Text,
    csv: bool,
    rows: Vec<(u16, u64)>, // index of the name, ns
    missing: u64,
}

/// Adds a stage to those of its name and layer. Returns whether there was space.
fn add_stage(sums: &mut Vec<Sum>, s: Sum) -> bool {
    if let Some(sum) = sums.iter_mut().find(|o| o.place == s.place && o.layer == s.layer) {
        *sum = Sum { took: sum.took + s.took, tokens: sum.tokens + s.tokens, ..s };
        return true;
    }
    let fits = sums.len() < SUMS;
    if fits {
        sums.push(s);
    }
    fits
}

/// Stages summed over layers, in the order in which they first ended.
fn summed(sums: &[Sum]) -> Vec<(u16, u64)> {
    let mut rows: Vec<(u16, u64)> = Vec::new();
    for s in sums {
        match rows.iter_mut().find(|(place, _)| *place == s.place) {
            Some((_, took)) => *took += s.took,
            None => rows.push((s.place, s.took)),
        }
    }
    rows
}

impl State {
    fn find(&mut self, id: u64) -> Option<&mut Live> {
        self.place.get(&id).and_then(|place| self.live.get_mut(place))
    }

    fn find_or_add(&mut self, id: u64, shared: &Shared) -> &mut Live {
        let place = match self.place.get(&id) {
            Some(&place) => place,
            None => {
                if let Some(oldest) = self.live.values().next().map(|l| l.id).filter(|_| self.live.len() == LIVE) {
                    self.forget(oldest, shared);
                }
                self.arrived += 1;
                self.place.insert(id, self.arrived);
                self.arrived
            }
        };
        self.live.entry(place).or_insert_with(|| Live { id, ..Live::default() })
    }

    fn forget(&mut self, id: u64, shared: &Shared) {
        let Some(gone) = self.place.remove(&id).and_then(|place| self.live.remove(&place)) else { return };
        if gone.reader != 0 {
            shared.wanted.fetch_sub(1, Ordering::Relaxed);
        }
        if self.csv {
            for row in summed(&gone.sums) {
                self.add_row(row);
            }
        }
    }

    fn add_row(&mut self, row: (u16, u64)) {
        if self.rows.len() < ROWS {
            self.rows.push(row);
        } else {
            self.missing += 1;
        }
    }

    /// The live request of an event. An unreported one counts as live if the engine does not report requests.
    fn of_event(&mut self, id: u64, shared: &Shared) -> Option<&mut Live> {
        if self.requests_reported {
            self.find(id)
        } else {
            Some(self.find_or_add(id, shared))
        }
    }

    fn note_stage(&mut self, request: u64, s: Sum, shared: &Shared) {
        let fits = if request == 0 {
            add_stage(&mut self.own, s)
        } else if let Some(live) = self.of_event(request, shared) {
            add_stage(&mut live.sums, s)
        } else {
            if self.csv {
                self.add_row((s.place, s.took)); // the request has ended already
            }
            true
        };
        self.missing += u64::from(!fits);
    }

    /// Returns the reader that gets the text of the token; 0: none, or all.
    fn note_token(&mut self, e: &Event, shared: &Shared) -> u64 {
        let count = e.x[2] & 0xffff_ffff;
        let Some(live) = self.of_event(e.request, shared) else { return 0 };
        let first = *live.first.get_or_insert(*e);
        live.last_at = e.at;
        live.tokens += count;
        if first.index != ABSENT32 && e.index != ABSENT32 && e.index >= first.index {
            live.tokens = u64::from(e.index - first.index) + count; // some may have been dropped
        }
        live.reader
    }

    fn queued(&mut self, e: &Event, what: Text, prompt: Text, shared: &Shared) {
        self.requests_reported = true;
        if self.find(e.request).is_some_and(|l| l.queued.is_some()) {
            self.forget(e.request, shared); // the id is reused
        }
        let live = self.find_or_add(e.request, shared);
        live.queued = Some(e.at);
        live.what = what;
        live.prompt = prompt;
        live.reader = e.x[2];
    }

    /// Writes the lines from sync to synced for a reader. again: it had one before.
    fn write(&self, t: &mut Text, names: &Names, hello: &Text, again: bool, reader: u64) {
        t.raw("{\"t\":\"sync\"}\n");
        if let Some(at) = self.engine_at.filter(|_| again) {
            write_engine(t, at, hello, &self.engine);
            t.end();
        }
        if let Some(at) = self.model_at {
            t.open_at("model", at);
            t.0.extend_from_slice(&self.model.0);
            t.end();
        }
        for sum in &self.own {
            write_stage(t, 0, sum, names);
            t.end();
        }
        for line in [&self.experts, &self.host, &self.counters, &self.ops, &self.draft] {
            if !line.0.is_empty() {
                t.0.extend_from_slice(&line.0);
                t.end();
            }
        }
        if let Some(kv) = &self.kv {
            write_kv(t, kv);
            t.end();
        }
        self.live.values().for_each(|live| live.write(t, names, reader));
        t.raw("{\"t\":\"synced\"}\n");
    }
}

impl Live {
    fn write(&self, t: &mut Text, names: &Names, reader: u64) {
        if let Some(at) = self.queued {
            write_request(t, "queued", self.id, at);
            t.0.extend_from_slice(&self.what.0);
            if self.reader == reader {
                t.0.extend_from_slice(&self.prompt.0);
            }
            t.end();
        }
        if let Some(at) = self.dispatched {
            write_request(t, "dispatched", self.id, at);
            t.end();
        }
        for sum in &self.sums {
            write_stage(t, self.id, sum, names);
            t.end();
        }
        let Some(first) = &self.first else { return };
        t.open_at("tok", first.at);
        t.member("r", self.id);
        t.given32("i", first.index);
        t.given32("d", first.id);
        t.end();
        if self.tokens > 1 {
            t.open_at("tok", self.last_at);
            t.member("r", self.id);
            if first.index != ABSENT32 {
                t.member("i", u64::from(first.index) + 1);
            }
            t.member("n", self.tokens - 1);
            t.end();
        }
    }
}

// ---- lines ----------------------------------------------------------------------------------------------------------

fn model_members(m: &Model) -> Text {
    let mut t = Text::default();
    for (name, v) in [("name", &m.name), ("path", &m.path), ("architecture", &m.architecture), ("quantisation", &m.quantisation)] {
        t.string(name, cut(v, SHORT_TEXT));
    }
    for (name, v) in [
        ("parameters", m.parameters),
        ("active_parameters", m.active_parameters),
        ("bytes", m.bytes),
        ("layers", m.layers),
        ("width", m.width),
        ("heads", m.heads),
        ("kv_heads", m.kv_heads),
        ("head_dim", m.head_dim),
        ("vocabulary", m.vocabulary),
        ("experts", m.experts),
        ("experts_used", m.experts_used),
        ("feed_forward", m.feed_forward),
        ("context", m.context),
        ("trained_context", m.trained_context),
        ("kv_bytes", m.kv_bytes),
        ("weight_bytes", m.weight_bytes),
    ] {
        if v > 0 {
            t.member(name, v);
        }
    }
    t
}

fn host_members(sample: &Host) -> Text {
    let mut t = Text::default();
    if !sample.interval.is_zero() {
        t.member("interval", nanos(sample.interval));
    }
    if !sample.cores.is_empty() {
        t.key("cores");
        t.list(sample.cores.iter(), |t, &v| t.real(v));
    }
    t.raw(if sample.limited { ",\"limited\":true" } else { "" });
    t.string("no_gpu", cut(sample.no_gpu, SHORT_TEXT));
    readings(&mut t, sample.readings);
    t.key("engine");
    t.raw("{\"pid\":");
    t.uint(u64::from(process::id()));
    readings(&mut t, sample.engine);
    t.raw("}");
    if !sample.gpus.is_empty() {
        t.key("gpus");
        t.list(sample.gpus.iter(), |t, &(name, list)| {
            t.raw("{\"name\":");
            t.quote(cut(name, SHORT_TEXT));
            readings(t, list);
            t.raw("}");
        });
    }
    t
}

/// The constant members of hello.
fn engine_members(o: &Options) -> Text {
    let mut t = Text::default();
    t.string("name", cut(&o.name, SHORT_TEXT));
    t.string("version", cut(&o.version, SHORT_TEXT));
    t.string("sdk", "rust");
    t.member("pid", u64::from(process::id()));
    if o.slots > 0 {
        t.member("slots", u64::from(o.slots));
    }
    if let Some(d) = &o.device {
        t.raw(if d.host { ",\"device\":{\"host\":true" } else { ",\"device\":{\"host\":false" });
        t.string("name", cut(&d.name, SHORT_TEXT));
        t.string("kernels", cut(&d.kernels, SHORT_TEXT));
        if d.threads > 0 {
            t.member("threads", u64::from(d.threads));
        }
        t.raw("}");
    }
    t
}

/// The member with the capabilities, and the control messages that the engine offers.
fn write_caps(t: &mut Text, caps: u32, offered: &[&str], text: bool) {
    t.key("caps");
    let sent = caps::NAMES.iter().enumerate().filter(|(i, _)| caps >> i & 1 == 1).map(|(_, n)| *n);
    t.list(sent.chain(offered.iter().copied()).chain(text.then_some("text")).chain(["counters"]), |t, n| t.quote(n));
}

fn wall() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, nanos)
}

fn write_engine(t: &mut Text, at: u64, hello: &Text, state: &Text) {
    t.open_at("engine", at);
    t.0.extend_from_slice(&hello.0);
    t.0.extend_from_slice(&state.0);
}

fn write_stage(t: &mut Text, request: u64, s: &Sum, names: &Names) {
    t.open_at("stage", s.at);
    if request != 0 {
        t.member("r", request);
    }
    t.member("dur", s.took);
    t.string("stage", names.name(usize::from(s.place)));
    t.given32("l", s.layer);
    if s.tokens > 0 {
        t.member("n", s.tokens);
    }
}

fn write_request(t: &mut Text, state: &str, request: u64, at: u64) {
    t.open_at("req", at);
    t.member("r", request);
    t.string("state", state);
}

/// The members of a queued line, and the one with the prompt.
fn write_queued(e: &Event, payload: &[u8]) -> (Text, Text) {
    let (mut t, mut prompt) = (Text::default(), Text::default());
    let mut rest = payload;
    for (i, name) in ["group", "label", "name", "prompt"].into_iter().enumerate() {
        let length = if i < 3 { (e.x[1] >> (16 * i)) as usize & 0xffff } else { rest.len() };
        let (text, after) = rest.split_at(length.min(rest.len()));
        let to = if i < 3 { &mut t } else { &mut prompt };
        to.string(name, &String::from_utf8_lossy(text));
        rest = after;
    }
    t.given("max", e.x[0]);
    t.given32("in", e.id);
    t.raw(if e.flags & 1 != 0 { ",\"cold\":true" } else { "" });
    t.raw(if e.flags & 2 != 0 { ",\"probe\":true" } else { "" });
    (t, prompt)
}

fn write_ended(t: &mut Text, e: &Event, payload: &[u8]) {
    write_request(t, ["finished", "cancelled", "failed"][e.id as usize % 3], e.request, e.at);
    let (why, reuse) = payload.split_at(usize::from(e.small).min(payload.len()));
    t.string("why", &String::from_utf8_lossy(why));
    if let Some((with, rest)) = reuse.split_first_chunk::<8>() {
        if let Some((at, why)) = rest.split_first_chunk::<8>() {
            t.raw(",\"reuse\":{\"at\":");
            t.uint(u64::from_le_bytes(*at));
            if u64::from_le_bytes(*with) != 0 {
                t.member("with", u64::from_le_bytes(*with));
            }
            t.string("why", &String::from_utf8_lossy(why));
            t.raw("}");
        }
    }
    t.given("in", e.x[0]);
    t.given("cached", e.x[1]);
    t.given32("pad", e.index);
    t.given("out", e.x[2]);
}

fn write_step(t: &mut Text, e: &Event, payload: &[u8]) {
    t.open_at("step", e.at);
    t.member("dur", e.x[0]);
    if e.request != 0 {
        t.member("s", e.request);
    }
    t.given32("n", e.id);
    t.given32("m", e.index);
    let (split, metrics) = payload.split_at(if e.flags & 1 != 0 { 24 } else { 0 });
    if !split.is_empty() {
        t.key("x");
        t.list(split.chunks_exact(4), |t, b| t.uint(u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))));
    }
    let metrics = std::str::from_utf8(metrics).unwrap_or("");
    if matches!(Json::parse(metrics), Some(Json::Object(_))) {
        t.key("fpm");
        t.0.extend(metrics.bytes().map(|c| if c < b' ' { b' ' } else { c })); // line breaks between members
    }
}

fn write_kv(t: &mut Text, e: &Event) {
    t.open_at("kv", e.at);
    t.member("used", e.x[0]);
    t.member("total", e.x[1]);
    t.given32("page", e.id);
    t.given("pinned", e.x[2]);
}

/// Tokens that become one line.
#[derive(Default)]
struct Batch {
    tokens: Vec<(Event, usize)>, // with the offset of its payload
    payload: Vec<u8>,
    reader: u64, // that gets the texts; 0: none, or all
}

const BATCH: usize = 256;

impl Batch {
    fn add(&mut self, mut e: Event, payload: &[u8], text: bool) {
        let payload = if text { payload } else { &payload[usize::from(e.small)..] };
        if !text {
            e.small = 0;
        }
        e.length = payload.len() as u32;
        self.tokens.push((e, self.payload.len()));
        self.payload.extend_from_slice(payload);
    }

    /// Writes a column: a single value if all are the same, otherwise an array, in which later entries of some columns
    /// are differences.
    fn column(&self, t: &mut Text, name: &str, differences: bool, get: impl Fn(&Event) -> Option<u64>) {
        let first = get(&self.tokens[0].0);
        let same = (!differences || self.tokens.len() == 1) && self.tokens.iter().all(|(e, _)| get(e) == first);
        if self.tokens.iter().all(|(e, _)| get(e).is_none()) {
            return;
        }
        t.key(name);
        if let Some(first) = first.filter(|_| same) {
            return t.uint(first);
        }
        let mut last = 0;
        t.list(self.tokens.iter(), |t, (e, _)| match get(e) {
            Some(v) if differences => t.int(v.wrapping_sub(mem::replace(&mut last, v)) as i64),
            Some(v) => t.uint(v),
            None => t.raw("null"),
        });
    }

    /// Writes a column of other values, if at least one token has a value.
    fn values(&self, t: &mut Text, name: &str, has: impl Fn(&Event) -> bool, put: impl Fn(&mut Text, &Event, &[u8])) {
        if !self.tokens.iter().any(|(e, _)| has(e)) {
            return;
        }
        let one = |t: &mut Text, (e, from): &(Event, usize)| {
            if has(e) {
                put(t, e, &self.payload[*from..from + e.length as usize]);
            } else {
                t.raw("null");
            }
        };
        t.key(name);
        match self.tokens.as_slice() {
            [token] => one(t, token),
            tokens => t.list(tokens.iter(), one),
        }
    }

    /// Writes the line. texts: with those of the tokens.
    fn write(&self, t: &mut Text, texts: bool) {
        let known = |v: u32| (v != ABSENT32).then_some(u64::from(v));
        let logprob = |e: &Event| f32::from_bits((e.x[2] >> 32) as u32);
        let text = |e: &Event| usize::from(e.small);
        let picks = |e: &Event| text(e) + 8 * usize::from(e.flags);
        t.open("tok");
        self.column(t, "a", true, |e| Some(e.at));
        self.column(t, "r", false, |e| Some(e.request));
        self.column(t, "i", true, |e| known(e.index));
        self.column(t, "d", false, |e| known(e.id));
        self.column(t, "n", false, |e| Some(e.x[2] & 0xffff_ffff).filter(|&n| n != 1));
        self.column(t, "s", true, |e| Some(e.x[0]).filter(|&s| s != 0));
        self.column(t, "w", false, |e| Some(e.x[1]).filter(|&w| w != ABSENT));
        self.values(t, "l", |e| logprob(e).is_finite(), |t, e, _| t.real32(logprob(e)));
        self.values(t, "p", |e| texts && text(e) > 0, |t, e, bytes| t.piece(&bytes[..text(e)]));
        self.values(
            t,
            "o",
            |e| e.flags > 0,
            |t, e, bytes| {
                t.list(bytes[text(e)..picks(e)].chunks_exact(8), |t, b| {
                    t.raw("[");
                    t.uint(u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])));
                    t.raw(",");
                    t.real32(f32::from_le_bytes([b[4], b[5], b[6], b[7]]));
                    t.raw("]");
                });
            },
        );
        self.values(
            t,
            "e",
            |e| e.length as usize > picks(e),
            |t, e, bytes| t.list(bytes[picks(e)..].chunks_exact(2), |t, b| t.uint(u64::from(u16::from_le_bytes([b[0], b[1]])))),
        );
    }
}

// ---- the backlog and the readers ------------------------------------------------------------------------------------

const READERS: usize = 16;
const LINES: usize = 1 << 16; // kept for slow readers
const CHUNK: usize = 64 << 10; // bytes taken from the backlog at a time
const LONGEST_MESSAGE: usize = 1 << 20; // longest line of a reader
const LONGEST_AUTH: usize = 1 << 10;

enum Listener {
    #[cfg(unix)]
    Unix(UnixListener),
    Tcp(TcpListener),
}

enum Stream {
    #[cfg(unix)]
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Listener {
    fn accept(&self) -> io::Result<Stream> {
        match self {
            #[cfg(unix)]
            Listener::Unix(l) => {
                let stream = l.accept()?.0;
                stream.set_nonblocking(true)?;
                Ok(Stream::Unix(stream))
            }
            Listener::Tcp(l) => {
                let stream = l.accept()?.0;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

impl Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Stream::Unix(s) => s.read(buffer),
            Stream::Tcp(s) => s.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Stream::Unix(s) => s.write(bytes),
            Stream::Tcp(s) => s.write(bytes),
        }
    }
}

/// Lines not yet sent to all readers, oldest first.
struct Backlog {
    bytes: VecDeque<u8>,
    lines: VecDeque<Waiting>,
    first: u64, // number of the first line
    from: u64,  // its position in the byte stream
    own: usize, // bytes of lines for one reader
    room: usize,
}

struct Waiting {
    from: u64,
    length: usize,
    kind: Kind,
    events: u64,
    own: Option<(u64, Vec<u8>)>, // the line with text, and the reader that gets it instead
}

impl Backlog {
    fn next(&self) -> u64 {
        self.first + self.lines.len() as u64
    }

    fn line(&self, number: u64) -> Option<&Waiting> {
        self.lines.get(number.wrapping_sub(self.first) as usize)
    }

    fn full(&self, more: usize) -> bool {
        self.bytes.len() + self.own + more > self.room || self.lines.len() == LINES
    }

    fn drop_first(&mut self) -> Option<Waiting> {
        let line = self.lines.pop_front()?;
        self.bytes.drain(..line.length);
        self.first += 1;
        self.from += line.length as u64;
        self.own -= line.own.as_ref().map_or(0, |(_, bytes)| bytes.len());
        Some(line)
    }

    fn push(&mut self, line: &[u8], own: Option<(u64, Vec<u8>)>, kind: Kind, events: u64) {
        self.own += own.as_ref().map_or(0, |(_, bytes)| bytes.len());
        self.lines.push_back(Waiting { from: self.from + self.bytes.len() as u64, length: line.len(), kind, events, own });
        self.bytes.extend(line);
    }

    fn copy(&self, line: &Waiting, reader: u64, out: &mut Vec<u8>) {
        if let Some((_, bytes)) = line.own.as_ref().filter(|(id, _)| *id == reader) {
            return out.extend_from_slice(bytes);
        }
        let from = (line.from - self.from) as usize;
        let to = from + line.length;
        let (a, b) = self.bytes.as_slices();
        out.extend_from_slice(&a[from.min(a.len())..to.min(a.len())]);
        out.extend_from_slice(&b[from.saturating_sub(a.len())..to.saturating_sub(a.len())]);
    }
}

struct Reader {
    id: u64,
    stream: Stream,
    since: u64,    // when it connected, or when bye was queued
    welcome: bool, // hello has been sent
    input: Vec<u8>,
    deaf: bool, // its input has ended
    next: u64,  // number of the next line of the backlog
    out: Text,  // complete lines being sent, the first of them perhaps in part
    sent: usize,
    delivered: u64,
    reported: u64,            // drops that were reported
    lost: [u64; KINDS.len()], // drops of this reader
    base: [u64; KINDS.len()], // drops of the ring before it connected
    leaving: bool,
    stale: bool, // events were dropped since the last state
    lossy: u64,  // when it became stale
    synced: u64, // when the last state was sent
}

impl Reader {
    /// Writes what the socket accepts now. `Err`: the connection is lost.
    fn send(&mut self) -> io::Result<()> {
        while self.sent < self.out.0.len() {
            match self.stream.write(&self.out.0[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.sent += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        self.out.0.clear();
        self.out.0.shrink_to(1 << 20); // after a large state
        self.sent = 0;
        Ok(())
    }

    fn pending(&self) -> bool {
        !self.out.0.is_empty()
    }

    /// Sends bye as the last line.
    fn bye(&mut self, why: &str, now: u64) {
        self.out.open("bye");
        self.out.string("why", why);
        self.out.end();
        self.leaving = true;
        self.since = now;
    }

    /// The next line from the reader, without its end. `Err`: the reason to close the connection.
    fn heard(&mut self) -> Result<Option<Vec<u8>>, &'static str> {
        let limit = if self.welcome { LONGEST_MESSAGE } else { LONGEST_AUTH };
        match self.input.iter().position(|&c| c == b'\n') {
            Some(end) if end <= limit => {
                let mut line: Vec<u8> = self.input.drain(..=end).collect();
                line.pop();
                Ok(Some(line))
            }
            None if self.input.len() <= limit => Ok(None),
            _ => Err("a line is too long"),
        }
    }

    /// Reads until there is a line. `Err`: the connection is lost.
    fn listen(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        while !self.deaf && self.input.len() <= LONGEST_MESSAGE && !self.input.contains(&b'\n') {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.deaf = true, // it may still read
                Ok(n) => self.input.extend_from_slice(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

// ---- the writer -----------------------------------------------------------------------------------------------------

const TICK: Duration = Duration::from_millis(10); // polling interval of the ring
const CALM: Duration = Duration::from_millis(50); // without events
const BUSY: Duration = Duration::from_millis(1); // while a socket is full

/// Reports whether a time has come, and schedules the next one.
fn due(at: &mut u64, now: u64, later: u64) -> bool {
    let come = now >= *at;
    if come {
        *at = now + later;
    }
    come
}

/// What /proc counted at a moment.
#[derive(Default)]
struct Sums {
    at: u64,
    cores: Vec<[u64; 3]>, // ticks in all, idle, stolen; the first is of all cores
    runnable: Option<f64>,
    counts: Vec<(&'static str, u64, f64)>, // of the machine: name, count, and how much of a second one is
    own: Vec<(&'static str, u64, f64)>,    // of this process
    waits: Option<BTreeMap<String, u64>>,  // ns that each thread waited for a core
    threads: f64,
}

/// The number after a word.
fn after(text: &str, word: &str) -> Option<u64> {
    text[text.find(word)? + word.len()..].split_whitespace().next()?.parse().ok()
}

impl Sums {
    /// `None` without /proc.
    fn read(at: u64) -> Option<Sums> {
        let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let mut s = Sums { at, runnable: after(&stat, "procs_running ").map(|n| n as f64), ..Sums::default() };
        for line in stat.lines().take_while(|l| l.starts_with("cpu")) {
            let t: Vec<u64> = line.split_whitespace().skip(1).take(8).filter_map(|n| n.parse().ok()).collect();
            s.cores.push([t.iter().sum(), t.get(3)? + t.get(4)?, *t.get(7)?]);
        }
        let rows: Vec<Vec<u64>> = file("/proc/net/dev")
            .lines()
            .skip(2)
            .filter_map(|l| l.split_once(':'))
            .filter(|(name, _)| name.trim() != "lo")
            .map(|(_, counts)| counts.split_whitespace().filter_map(|n| n.parse().ok()).collect())
            .collect();
        for (name, column) in [("net_in", 0), ("net_out", 8)] {
            if !rows.is_empty() {
                s.counts.push((name, rows.iter().filter_map(|r| r.get(column)).sum(), 1e9));
            }
        }
        for (name, of) in [("cpu_pressure", "cpu"), ("mem_pressure", "memory"), ("io_pressure", "io")] {
            s.counts.extend(after(&file(&format!("/proc/pressure/{of}")), "total=").map(|us| (name, us * 1000, 1.0)));
        }
        let stat = file("/proc/self/stat");
        let v: Vec<u64> = stat.rsplit(')').next()?.split_whitespace().map(|n| n.parse().unwrap_or(0)).collect();
        const TICK: u64 = SECOND / 100; // USER_HZ is 100 on all systems that Rust supports
        s.own = vec![("cpu", (v.get(11)? + v.get(12)?) * TICK, 1.0), ("minor_faults", v[7], 1e9), ("faults", v[9], 1e9)];
        s.threads = *v.get(17)? as f64;
        let io = file("/proc/self/io");
        for (name, of) in [("read", "\nread_bytes: "), ("write", "\nwrite_bytes: "), ("read_ops", "syscr: "), ("write_ops", "syscw: ")] {
            s.own.extend(after(&io, of).map(|n| (name, n, 1e9)));
        }
        if s.threads <= 256.0 {
            let tasks = fs::read_dir("/proc/self/task").ok()?.filter_map(|t| t.ok()?.file_name().into_string().ok());
            let waited = |t: &String| file(&format!("/proc/self/task/{t}/schedstat")).split_whitespace().nth(1)?.parse().ok();
            s.waits = Some(tasks.filter_map(|t| waited(&t).map(|ns| (t, ns))).collect());
        }
        Some(s)
    }

    /// Writes the members of a sample.
    fn write(&self, t: &mut Text, was: &Sums) {
        let ns = self.at.saturating_sub(was.at).max(1) as f64;
        let share = |i: usize, of: usize| match (self.cores.get(i), was.cores.get(i)) {
            (Some(now), Some(was)) if now[0] > was[0] => now[of].saturating_sub(was[of]) as f64 / (now[0] - was[0]) as f64,
            _ => 0.0,
        };
        let rates = |now: &[(&'static str, u64, f64)], was: &[(&'static str, u64, f64)]| -> Vec<(&'static str, Reading)> {
            let before = |name| was.iter().find(|w| w.0 == name).map(|w| w.1);
            let rate = |&(name, n, unit): &(&'static str, u64, f64)| {
                Some((name, Reading::Derived(n.checked_sub(before(name)?)? as f64 * unit / ns)))
            };
            now.iter().filter_map(rate).collect()
        };
        let mut machine = rates(&self.counts, &was.counts);
        machine.extend([("cpu", Reading::Derived(1.0 - share(0, 1))), ("steal", Reading::Derived(share(0, 2)))]);
        machine.extend(self.runnable.map(|n| ("runnable", Reading::Reported(n))));
        let load = fs::read_to_string("/proc/loadavg").ok().and_then(|l| l.split_whitespace().next()?.parse().ok());
        machine.extend(load.map(|l| ("load1", Reading::Reported(l))));
        let memory = memory();
        if let Some((total, used, _)) = memory {
            machine.extend([("mem_total", Reading::Reported(total as f64)), ("mem_used", Reading::Derived(used as f64))]);
        }
        let mut engine = rates(&self.own, &was.own);
        engine.extend(self.own.iter().filter_map(|&(name, n, _)| match name {
            "read" => Some(("read_sum", Reading::Reported(n as f64))),
            "write" => Some(("write_sum", Reading::Reported(n as f64))),
            _ => None,
        }));
        engine.push(("threads", Reading::Reported(self.threads)));
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        for (name, of) in [("rss", "VmRSS:"), ("peak", "VmHWM:")] {
            engine.extend(after(&status, of).map(|kib| (name, Reading::Reported((kib * 1024) as f64))));
        }
        if let (Some(now), Some(was)) = (&self.waits, &was.waits) {
            let waited: u64 = now.iter().map(|(t, ns)| ns.saturating_sub(was.get(t).copied().unwrap_or(0))).sum();
            engine.push(("run_wait", Reading::Derived(waited as f64 / ns)));
        }
        let cores: Vec<f64> =
            if self.cores.len() == was.cores.len() { (1..self.cores.len()).map(|i| 1.0 - share(i, 1)).collect() } else { Vec::new() };
        let interval = Duration::from_nanos(ns as u64);
        let limited = memory.is_some_and(|m| m.2);
        let sample = Host { interval, cores: &cores, limited, readings: &machine, engine: &engine, ..Host::default() };
        t.0.extend_from_slice(&host_members(&sample).0);
    }
}

/// Bytes of memory, those in use, and whether both are of a control group: the lowest limit of the machine and of the
/// process's groups.
fn memory() -> Option<(u64, u64, bool)> {
    let about = fs::read_to_string("/proc/meminfo").ok()?;
    let total = after(&about, "MemTotal:")? * 1024;
    let mut found = (total, total - after(&about, "MemAvailable:")? * 1024, false);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut group = groups.lines().find_map(|l| l.strip_prefix("0::")).unwrap_or("/").trim_end_matches('/');
    loop {
        let number = |of: &str| fs::read_to_string(format!("/sys/fs/cgroup{group}/memory.{of}")).ok()?.trim().parse::<u64>().ok();
        if let (Some(limit), Some(used)) = (number("max"), number("current")) {
            if limit < found.0 {
                found = (limit, used, true);
            }
        }
        match group.rfind('/') {
            Some(end) => group = &group[..end],
            None => return Some(found),
        }
    }
}

struct Writer {
    shared: Arc<Shared>,
    listener: Listener,
    place: Option<Place>,
    commands: mpsc::Receiver<Command>,
    control_queue: Option<mpsc::SyncSender<(u64, u64, Message)>>,
    offered: Vec<&'static str>,
    trusted: bool, // readers may control
    token: Option<String>,
    run: String,
    about: Text, // constant members of hello
    hello: Text, // those and the capabilities
    caps: u32,
    caps_sent: u32,
    sums: Option<Sums>, // of the last sample of the machine
    host_due: u64,
    head: u64,
    state: State,
    line: Text,
    own: Text,       // the line with text
    own_reader: u64, // the reader that gets it; 0: the line has no such variant
    batch: Batch,
    backlog: Backlog,
    readers: Vec<Reader>,
    reader_ids: u64,
    picked: u64,   // sum of all picks in the latest line
    counted: Text, // the counters in the latest line
    experts_due: u64,
    counters_due: u64,
    clock_due: u64,
    look_due: u64,
    look: Duration, // polling interval of readers' input and new connections
    read_at: u64,   // time of the last event
    sent_at: u64,   // when a reader last received something
    csv: Vec<(PathBuf, u64, mpsc::Sender<io::Result<Flushed>>)>,
    closing: Option<String>,
}

impl Writer {
    fn new(
        shared: Arc<Shared>,
        listener: Listener,
        place: Option<Place>,
        commands: mpsc::Receiver<Command>,
        mut o: Options,
    ) -> io::Result<Writer> {
        let trusted = place.is_some() || o.token.is_some();
        let about = engine_members(&o);
        let controls = mem::take(&mut o.controls);
        let offered: Vec<_> = controls.offered().into_iter().filter(|(_, there)| *there).map(|(n, _)| n).collect();
        let mut hello = about.clone();
        write_caps(&mut hello, o.caps, if trusted { &offered } else { &[] }, o.text);
        let mut control_queue = None;
        if trusted && !offered.is_empty() {
            let (sender, messages) = mpsc::sync_channel(64);
            let shared = shared.clone();
            thread::Builder::new().name("llmtop-control".into()).spawn(move || obey(controls, messages, shared))?;
            control_queue = Some(sender);
        }
        let look = if control_queue.is_some() { TICK } else { CALM };
        let mut state = State { csv: o.csv, ..State::default() };
        state.engine.string("state", if o.state.is_empty() { "ready" } else { cut(&o.state, SHORT_TEXT) });
        if let Some(model) = &o.model {
            state.model = model_members(model);
            state.model_at = Some(0);
        }
        let backlog = Backlog { bytes: VecDeque::new(), lines: VecDeque::new(), first: 0, from: 0, own: 0, room: o.backlog.max(4096) };
        Ok(Writer {
            shared,
            listener,
            place,
            commands,
            control_queue,
            offered,
            trusted,
            token: o.token,
            run: format!("{:x}-{:x}", wall(), process::id()),
            about,
            hello,
            caps: o.caps,
            caps_sent: o.caps,
            sums: None,
            host_due: 0,
            head: 0,
            state,
            line: Text::default(),
            own: Text::default(),
            own_reader: 0,
            batch: Batch::default(),
            backlog,
            readers: Vec::new(),
            reader_ids: 0,
            picked: 0,
            counted: Text::default(),
            experts_due: 0,
            counters_due: 0,
            clock_due: SECOND,
            look_due: 0,
            look,
            read_at: 0,
            sent_at: 0,
            csv: Vec::new(),
            closing: None,
        })
    }

    fn run(mut self) {
        loop {
            let read = self.drain();
            self.write_tokens();
            if self.closing.is_some() && read == 0 {
                break;
            }
            let now = self.shared.now();
            self.flush_csv();
            self.tables(now, false);
            let (beat, look) = (due(&mut self.clock_due, now, SECOND), due(&mut self.look_due, now, nanos(self.look)));
            if look {
                self.accept(now);
            }
            self.serve_all(now, beat, look);
            self.wait(read, now);
        }
        self.farewell();
    }

    /// Waits for the next turn, or for a command.
    fn wait(&mut self, read: u64, now: u64) {
        if read > 0 {
            self.read_at = now;
        }
        let full = self.readers.iter().any(Reader::pending);
        let wait = match () {
            () if read >= self.shared.ring.cells.len() as u64 / 4 => Duration::ZERO,
            () if full && now - self.sent_at < SECOND / 10 => BUSY, // otherwise it is stalled
            () if now - self.read_at > SECOND => CALM,
            () => TICK,
        };
        let mut command = self.commands.recv_timeout(wait).ok();
        while let Some(c) = command {
            self.obey(c);
            command = self.commands.try_recv().ok();
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Close(why) => self.closing = Some(why),
            Command::Csv(path, after, answer) => self.csv.push((path, after, answer)),
            Command::Reply(reader, line) => {
                if let Some(r) = self.readers.iter_mut().find(|r| r.id == reader && !r.leaving) {
                    r.out.0.extend_from_slice(&line.0);
                }
            }
        }
    }

    // From the ring to lines.

    /// Reads complete events, at most as many as fit in the ring. Returns the number of cells.
    fn drain(&mut self) -> u64 {
        let (begin, mut given) = (self.head, self.head);
        let shared = self.shared.clone();
        let mut payload = Vec::new();
        while self.head - begin < shared.ring.cells.len() as u64 {
            let Some(e) = shared.ring.read(self.head, &mut payload) else { break };
            self.head += e.cells();
            if self.head - given >= 64 {
                shared.ring.give_back(self.head - given);
                given = self.head;
            }
            self.on(&e, &payload);
        }
        shared.ring.give_back(self.head - given);
        self.head - begin
    }

    fn on(&mut self, e: &Event, payload: &[u8]) {
        let shared = self.shared.clone();
        self.caps |= e.what.cap();
        if e.what == What::Token && payload.len() > usize::from(e.small) + 8 * usize::from(e.flags) {
            self.caps |= caps::PICKS;
        }
        if e.what == What::Token {
            let reader = self.state.note_token(e, &shared);
            if self.watched() {
                if reader != 0 && self.batch.reader != 0 && reader != self.batch.reader {
                    self.write_tokens();
                }
                self.batch.reader = self.batch.reader.max(reader);
                self.batch.add(*e, payload, shared.text || reader != 0);
            }
            if self.batch.tokens.len() == BATCH {
                self.write_tokens();
            }
            return;
        }
        self.write_tokens();
        let mut t = mem::take(&mut self.line);
        t.0.clear();
        match e.what {
            What::Stage => {
                let sum = Sum { place: e.small, layer: e.id, at: e.at, took: e.x[0], tokens: e.x[1] };
                self.state.note_stage(e.request, sum, &shared);
                write_stage(&mut t, e.request, &sum, &shared.names);
            }
            What::Step => write_step(&mut t, e, payload),
            What::Kv => {
                write_kv(&mut t, e);
                t.given32("freed", e.index);
                t.given("held", e.request);
                self.state.kv = Some(*e);
            }
            What::Log => {
                t.open_at("log", e.at);
                t.key("m");
                t.quote(&String::from_utf8_lossy(payload));
            }
            What::Queued | What::Dispatched | What::Ended => self.on_request(&mut t, e, payload),
            What::Usage => {
                t.open_at("usage", e.at);
                t.0.extend_from_slice(payload);
            }
            What::Token | What::Host | What::Engine | What::Model | What::Ops | What::Draft => self.on_state(&mut t, e, payload),
        }
        self.line = t;
        self.push(e.what.kind(), 1);
    }

    fn on_request(&mut self, t: &mut Text, e: &Event, payload: &[u8]) {
        match e.what {
            What::Ended => {
                write_ended(t, e, payload);
                self.state.forget(e.request, &self.shared);
            }
            What::Dispatched => {
                write_request(t, "dispatched", e.request, e.at);
                self.state.requests_reported = true;
                self.state.find_or_add(e.request, &self.shared).dispatched = Some(e.at);
            }
            _ => {
                let (mut what, mut prompt) = write_queued(e, payload);
                if self.shared.text {
                    what.0.append(&mut prompt.0);
                }
                write_request(t, "queued", e.request, e.at);
                t.0.extend_from_slice(&what.0);
                if e.x[2] != 0 {
                    self.own_reader = e.x[2];
                    self.own = t.clone();
                    self.own.0.extend_from_slice(&prompt.0);
                }
                self.state.queued(e, what, prompt, &self.shared);
            }
        }
    }

    /// An event that replaces an earlier one.
    fn on_state(&mut self, t: &mut Text, e: &Event, payload: &[u8]) {
        match e.what {
            What::Engine => {
                self.state.engine = Text(payload.to_vec());
                self.state.engine_at = Some(e.at);
                write_engine(t, e.at, &self.hello, &self.state.engine);
            }
            What::Model => {
                self.state.model.0.clear();
                self.state.model.given("dur", e.x[0]);
                self.state.model.0.extend_from_slice(payload);
                self.state.model_at = Some(e.at);
                self.state.experts.0.clear(); // those of the previous model
                self.picked = 0;
                t.open_at("model", e.at);
                t.0.extend_from_slice(&self.state.model.0);
            }
            _ => {
                let (name, kept) = match e.what {
                    What::Ops => ("ops", &mut self.state.ops),
                    What::Draft => ("draft", &mut self.state.draft),
                    _ => ("host", &mut self.state.host),
                };
                t.open_at(name, e.at);
                t.0.extend_from_slice(payload);
                *kept = t.clone();
            }
        }
    }

    /// Writes the collected tokens as one line.
    fn write_tokens(&mut self) {
        let events = self.batch.tokens.len() as u64;
        if events > 0 {
            self.line.0.clear();
            self.batch.write(&mut self.line, self.shared.text);
            self.own_reader = mem::take(&mut self.batch.reader);
            if self.own_reader != 0 {
                self.own.0.clear();
                self.batch.write(&mut self.own, true);
            }
            self.batch.tokens.clear();
            self.batch.payload.clear();
            self.push(Kind::Token, events);
        }
    }

    // Tables.

    fn tables(&mut self, now: u64, last: bool) {
        if self.caps != self.caps_sent {
            self.caps_sent = self.caps;
            self.hello = self.about.clone();
            write_caps(&mut self.hello, self.caps, if self.trusted { &self.offered } else { &[] }, self.shared.text);
            self.state.engine_at = Some(now);
            self.line.0.clear();
            write_engine(&mut self.line, now, &self.hello, &self.state.engine);
            self.push(Kind::Engine, 1);
        }
        if self.shared.sampled.load(Ordering::Relaxed) && due(&mut self.host_due, now, SECOND) {
            self.sample(now);
        }
        if due(&mut self.experts_due, now, SECOND / 10) || last {
            self.write_experts(now);
        }
        if due(&mut self.counters_due, now, SECOND / 4) || last {
            self.write_counters(now);
        }
    }

    /// Samples the machine and this process.
    fn sample(&mut self, now: u64) {
        let Some(sums) = Sums::read(now) else {
            self.host_due = u64::MAX; // not Linux
            return;
        };
        if let Some(was) = self.sums.take() {
            self.line.0.clear();
            self.line.open_at("host", now);
            sums.write(&mut self.line, &was);
            self.state.host = self.line.clone();
            self.caps |= caps::HOST;
            self.push(Kind::Host, 1);
        }
        self.sums = Some(sums);
    }

    fn write_experts(&mut self, now: u64) {
        let shared = self.shared.clone();
        let table = shared.picks.read().unwrap_or_else(PoisonError::into_inner);
        let counts: Vec<u64> = table.counts.iter().map(|c| c.load(Ordering::Relaxed)).collect();
        let all = counts.iter().sum();
        if all == self.picked || counts.is_empty() {
            return;
        }
        self.picked = all;
        self.caps |= caps::EXPERTS;
        self.line.0.clear();
        let t = &mut self.line;
        t.open_at("experts", now);
        t.member("layers", table.layers as u64);
        t.member("experts", table.experts as u64);
        if table.used > 0 {
            t.member("used", table.used as u64);
        }
        let every = shared.every.load(Ordering::Relaxed);
        if every > 1 {
            t.member("every", every);
        }
        for ((picks, tokens), counts) in [("p", "pt"), ("d", "dt")].into_iter().zip(counts.chunks(counts.len() / 2)) {
            t.key(picks);
            t.list(counts.iter(), |t, &n| t.uint(n));
            let most = counts.chunks(table.experts).map(|layer| layer.iter().sum::<u64>()).max().unwrap_or(0);
            if table.used > 0 {
                // Those of the layer with the most picks: dense layers have none.
                t.member(tokens, most / table.used as u64);
            }
        }
        self.state.experts = self.line.clone();
        self.push(Kind::Experts, 1);
    }

    /// Counters by name: those kept here, then engine-specific ones, which replace them.
    fn counters(&self) -> BTreeMap<String, f64> {
        let s = &self.shared;
        let mut all: BTreeMap<String, f64> =
            COUNTERS.iter().zip(&s.counts).filter_map(|(name, c)| Some((name.to_string(), c.get()?))).collect();
        let ns = s.tokenizer_ns.load(Ordering::Relaxed);
        if ns > 0 {
            all.insert("tokenizer_us".into(), (ns / 1000) as f64);
        }
        for &place in &s.tokenizer[1..] {
            let Some(stats) = s.names.0[place].stats() else { continue };
            let us = |d: Duration| d.as_nanos() as f64 / 1e3;
            let mut put = |what: &str, v: f64| all.insert(format!("{}_{what}", s.names.name(place)), v);
            put("count", stats.count as f64);
            put("us", us(stats.total));
            put("min_us", us(stats.min));
            put("max_us", us(stats.max));
            put("mean_us", stats.mean_us().unwrap_or(0.0));
            if stats.tokens > 0 {
                put("tokens", stats.tokens as f64);
            }
        }
        for (name, c) in hold(&s.own_names).iter().zip(s.own.iter()) {
            if let Some(v) = c.get() {
                all.insert(name.clone(), v);
            }
        }
        for (ratio, of, by) in
            [("tokenizer_us_per_token", "tokenizer_us", "tokenizer_tokens"), ("cache_hit_ratio", "cache_hits", "cache_lookups")]
        {
            if let (Some(&of), Some(&by)) = (all.get(of), all.get(by).filter(|by| **by > 0.0)) {
                all.entry(ratio.to_string()).or_insert(of / by);
            }
        }
        all
    }

    fn write_counters(&mut self, now: u64) {
        let mut counted = Text::default();
        for (name, v) in self.counters() {
            counted.raw(if counted.0.is_empty() { "{" } else { "," });
            counted.quote(&name);
            counted.raw(":");
            counted.real(v);
        }
        if counted.0.is_empty() || counted == self.counted {
            return;
        }
        self.line.0.clear();
        self.line.open_at("count", now);
        self.line.key("c");
        self.line.0.extend_from_slice(&counted.0);
        self.line.raw("}");
        self.counted = counted;
        self.state.counters = self.line.clone();
        self.push(Kind::Counters, 1);
    }

    // To the readers.

    fn watched(&self) -> bool {
        self.readers.iter().any(|r| r.welcome)
    }

    /// Appends the line, which contains some events, to the backlog; the oldest lines make room.
    fn push(&mut self, kind: Kind, events: u64) {
        let reader = mem::take(&mut self.own_reader);
        if !self.watched() {
            return;
        }
        self.line.end();
        let own = (reader != 0).then(|| {
            self.own.end();
            (reader, mem::take(&mut self.own.0))
        });
        let bytes = self.line.0.len() + own.as_ref().map_or(0, |(_, bytes)| bytes.len());
        if bytes > LONGEST_LINE || bytes > self.backlog.room / 2 {
            self.readers.iter_mut().filter(|r| r.welcome).for_each(|r| r.lost[kind as usize] += events);
            return;
        }
        while self.backlog.full(bytes) {
            let first = self.backlog.first;
            let Some(line) = self.backlog.drop_first() else { break };
            for r in self.readers.iter_mut().filter(|r| r.welcome && r.next == first) {
                r.lost[line.kind as usize] += line.events;
                r.next += 1;
            }
        }
        self.backlog.push(&self.line.0, own, kind, events);
    }

    /// Drops of a reader, by kind.
    fn losses(&self, r: &Reader) -> [u64; KINDS.len()] {
        let mut by = r.lost;
        for (k, n) in by.iter_mut().enumerate() {
            *n += self.shared.ring.dropped[k].load(Ordering::Relaxed) - r.base[k];
        }
        by
    }

    fn report_lost(&self, r: &mut Reader, by: [u64; KINDS.len()], now: u64) {
        r.reported = by.iter().sum();
        r.out.open_at("lost", now);
        r.out.key("by");
        r.out.raw("{");
        let mut mark = "\"";
        for (name, n) in KINDS.iter().zip(by).filter(|(_, n)| *n > 0) {
            r.out.raw(mark);
            r.out.raw(name);
            r.out.raw("\":");
            r.out.uint(n);
            mark = ",\"";
        }
        r.out.raw("}");
        r.out.member("q", r.delivered + r.reported);
        r.out.end();
        if !r.stale {
            r.lossy = now;
        }
        r.stale = true;
    }

    fn send_clock(&self, r: &mut Reader) {
        r.out.open_at("clock", self.shared.now());
        r.out.member("wall", wall());
        r.out.member("q", r.delivered + r.reported);
        r.out.end();
    }

    /// Moves lines from the backlog to out: they count as delivered.
    fn take(&self, r: &mut Reader) {
        while r.out.0.len() < CHUNK {
            let Some(line) = self.backlog.line(r.next) else { break };
            self.backlog.copy(line, r.id, &mut r.out.0);
            r.delivered += line.events;
            r.next += 1;
        }
    }

    /// Drops all lines that a slow reader still has to receive, so that it can get the current state.
    fn skip(&self, r: &mut Reader) {
        while let Some(line) = self.backlog.line(r.next) {
            r.lost[line.kind as usize] += line.events;
            r.next += 1;
        }
    }

    /// Sends as much to a reader as its socket accepts. `Err`: the connection must be closed.
    fn serve(&self, r: &mut Reader, now: u64) -> io::Result<()> {
        loop {
            r.send()?;
            if r.pending() || r.leaving || !r.welcome {
                return Ok(());
            }
            let mut by = self.losses(r);
            if by.iter().sum::<u64>() != r.reported {
                if r.stale && now - r.lossy > 2 * SECOND {
                    self.skip(r);
                    by = self.losses(r);
                }
                self.report_lost(r, by, now);
            }
            if r.next != self.backlog.next() {
                self.take(r);
            } else if r.stale && now - r.synced > SECOND {
                self.state.write(&mut r.out, &self.shared.names, &self.hello, true, r.id);
                r.stale = false;
                r.synced = now;
            } else if !r.pending() {
                return Ok(());
            }
        }
    }

    fn accept(&mut self, now: u64) {
        while let Ok(stream) = self.listener.accept() {
            self.reader_ids += 1;
            let mut r = Reader {
                id: self.reader_ids,
                stream,
                since: now,
                welcome: false,
                input: Vec::new(),
                deaf: false,
                next: 0,
                out: Text::default(),
                sent: 0,
                delivered: 0,
                reported: 0,
                lost: Default::default(),
                base: Default::default(),
                leaving: false,
                stale: false,
                lossy: 0,
                synced: 0,
            };
            if self.readers.len() >= READERS {
                r.bye("too many readers", now);
                let _ = r.send(); // it is rejected in any case
                continue;
            }
            if self.token.is_none() {
                self.greet(&mut r, now);
            } else {
                r.out.raw("{\"t\":\"auth\"}\n");
            }
            self.readers.push(r);
        }
    }

    /// Writes hello and the state. Events are counted for the reader from here on.
    fn greet(&self, r: &mut Reader, now: u64) {
        let t = &mut r.out;
        t.open("hello");
        t.raw(",\"v\":\"1.0\"");
        t.string("run", &self.run);
        t.member("a", self.shared.now());
        t.member("wall", wall());
        t.0.extend_from_slice(&self.hello.0);
        t.0.extend_from_slice(&self.state.engine.0);
        if self.state.model_at.is_some() {
            t.raw(",\"model\":{");
            t.0.extend_from_slice(self.state.model.0.get(1..).unwrap_or_default()); // without the comma
            t.raw("}");
        }
        t.end();
        self.state.write(&mut r.out, &self.shared.names, &self.hello, false, r.id);
        r.welcome = true;
        r.next = self.backlog.next();
        r.synced = now;
        for (base, dropped) in r.base.iter_mut().zip(&self.shared.ring.dropped) {
            *base = dropped.load(Ordering::Relaxed);
        }
    }

    /// Executes the input of a reader. `Err`: the connection is lost.
    fn listen_to(&self, r: &mut Reader, now: u64) -> io::Result<()> {
        while !r.leaving && r.out.0.len() - r.sent < CHUNK {
            r.listen()?;
            match r.heard() {
                Ok(None) => break,
                Ok(Some(line)) if line.iter().all(u8::is_ascii_whitespace) => {}
                Ok(Some(line)) => {
                    if let Err(why) = self.hear(r, &line, now) {
                        r.bye(why, now);
                    }
                }
                Err(why) => r.bye(why, now),
            }
        }
        if !r.welcome && !r.leaving && now - r.since > 5 * SECOND {
            r.bye("no token", now);
        }
        Ok(())
    }

    fn hear(&self, r: &mut Reader, line: &[u8], now: u64) -> Result<(), &'static str> {
        let (call, name, message) = match read_line(line, r.id) {
            Ok(Line::Auth(given)) => {
                let token = self.token.as_deref().unwrap_or_default();
                if r.welcome {
                    return Ok(()); // no token was requested, or it was already accepted
                }
                if !same_token(given.unwrap_or_default().as_bytes(), token.as_bytes()) {
                    return Err("wrong token");
                }
                self.greet(r, now);
                return Ok(());
            }
            Ok(Line::Control(call, name, message)) if r.welcome => (call, name, message),
            Err(why) if r.welcome => return Err(why),
            _ => return Err("wrong token"),
        };
        let refuse = |why: &str| reply(call, Err(why.to_string()));
        let answer = match &self.control_queue {
            _ if !self.trusted => refuse("no control over TCP without a token"),
            Some(queue) if self.offered.contains(&name) => match queue.try_send((r.id, call, message)) {
                Ok(()) => return Ok(()),
                Err(mpsc::TrySendError::Full(_)) => refuse("the queue of control messages is full"),
                Err(mpsc::TrySendError::Disconnected(_)) => refuse("the engine accepts no more control messages"),
            },
            _ => refuse(&format!("this engine does not offer {name}")),
        };
        r.out.0.extend_from_slice(&answer.0);
        Ok(())
    }

    /// Serves all readers. beat: send them the time; look: read their input.
    fn serve_all(&mut self, now: u64, beat: bool, look: bool) {
        let mut readers = mem::take(&mut self.readers);
        readers.retain_mut(|r| {
            let before = (r.next, r.sent);
            let heard = if look { self.listen_to(r, now) } else { Ok(()) };
            let mut good = heard.and_then(|()| self.serve(r, now));
            if good.is_ok() && beat && r.welcome && !r.pending() && !r.leaving {
                self.send_clock(r);
                good = r.send();
            }
            if before != (r.next, r.sent) {
                self.sent_at = now;
            }
            good.is_ok() && !(r.leaving && (!r.pending() || now - r.since > SECOND))
        });
        self.readers = readers;
        let needed = self.readers.iter().filter(|r| r.welcome).map(|r| r.next).min().unwrap_or(u64::MAX);
        while self.backlog.first < needed && self.backlog.drop_first().is_some() {}
    }

    /// Writes remaining lines, then bye, for at most half a second.
    fn farewell(&mut self) {
        let until = self.shared.now() + SECOND / 2;
        let why = self.closing.take().unwrap_or_default();
        self.tables(self.shared.now(), true);
        self.flush_csv();
        while !self.readers.is_empty() && self.shared.now() < until {
            let now = self.shared.now();
            self.serve_all(now, false, false);
            for r in self.readers.iter_mut().filter(|r| !r.pending() && !r.leaving) {
                r.bye(&why, now);
                let _ = r.send(); // errors of disconnected readers do not matter
            }
            if !self.readers.is_empty() {
                thread::sleep(BUSY);
            }
        }
        self.place = None; // removes the socket
    }

    // The CSV.

    /// Writes the requested files, once the ring has been read up to the time of the request.
    fn flush_csv(&mut self) {
        let (due, later): (Vec<_>, Vec<_>) = mem::take(&mut self.csv).into_iter().partition(|(_, after, _)| self.head >= *after);
        self.csv = later;
        for (path, _, answer) in due {
            let _ = answer.send(self.write_csv(&path)); // the caller of csv waits for it
        }
    }

    fn write_csv(&self, path: &Path) -> io::Result<Flushed> {
        if !self.state.csv {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "flush stages: the socket was opened without csv"));
        }
        let mut rows = summed(&self.state.own);
        rows.extend(&self.state.rows);
        rows.extend(self.state.live.values().flat_map(|l| summed(&l.sums)));
        let mut text = String::from("stage,elapsed_us\n");
        for (place, ns) in &rows {
            let name = self.shared.names.name(usize::from(*place));
            let quoted = if name.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.into() };
            text.push_str(&format!("{quoted},{}\n", *ns as f64 / 1e3));
        }
        fs::write(path, text)?;
        let missing = self.state.missing + self.shared.ring.dropped[Kind::Stage as usize].load(Ordering::Relaxed);
        Ok(Flushed { rows: rows.len() as u64, missing })
    }
}

// ---- opening --------------------------------------------------------------------------------------------------------

const LONGEST_PATH: usize = 103; // of a socket path, on all systems

fn fail(kind: io::ErrorKind, why: &str) -> io::Error {
    io::Error::new(kind, format!("open event socket: {why}"))
}

fn listen(o: &Options) -> io::Result<(Listener, String, Option<Place>)> {
    let address = match &o.address {
        Some(address) => address.clone(),
        None => default_address(&o.name)?,
    };
    let (listener, address, place) = match address.split_once(':') {
        Some(("tcp", rest)) => listen_tcp(rest, o.token.is_some())?,
        #[cfg(unix)]
        Some(("unix", path)) if !path.is_empty() => listen_unix(Path::new(path))?,
        _ => return Err(fail(io::ErrorKind::InvalidInput, &format!("{address}: want unix:PATH or tcp:HOST:PORT"))),
    };
    match &listener {
        #[cfg(unix)]
        Listener::Unix(l) => l.set_nonblocking(true)?,
        Listener::Tcp(l) => l.set_nonblocking(true)?,
    }
    Ok((listener, address, place))
}

fn listen_tcp(rest: &str, token: bool) -> io::Result<(Listener, String, Option<Place>)> {
    let wrong = |why: &str| fail(io::ErrorKind::InvalidInput, &format!("tcp:{rest}: {why}"));
    let (host, port) = rest.rsplit_once(':').ok_or_else(|| wrong("want tcp:HOST:PORT"))?;
    let port: u16 = port.parse().map_err(|_| wrong("want tcp:HOST:PORT"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let named = |e: io::Error| fail(e.kind(), &format!("tcp:{rest}: {e}"));
    let all: Vec<_> = (host, port).to_socket_addrs().map_err(named)?.collect();
    if host.is_empty() || (!token && !all.iter().all(|a| a.ip().is_loopback())) {
        return Err(wrong("other machines can reach this address, so it needs a token"));
    }
    let listener = TcpListener::bind(&all[..]).map_err(named)?;
    let address = format!("tcp:{}", listener.local_addr().map_err(named)?);
    Ok((Listener::Tcp(listener), address, None))
}

#[cfg(not(unix))]
fn default_address(_: &str) -> io::Result<String> {
    Ok("tcp:127.0.0.1:0".into())
}

/// A socket file, removed when dropped unless another engine has replaced it.
struct Place {
    path: PathBuf,
    #[cfg(unix)]
    inode: (u64, u64),
}

#[cfg(not(unix))]
impl Drop for Place {
    fn drop(&mut self) {}
}

#[cfg(unix)]
impl Drop for Place {
    fn drop(&mut self) {
        if inode(&self.path).ok() == Some(self.inode) {
            let _ = fs::remove_file(&self.path); // a file that remains is replaced by the next engine
        }
    }
}

#[cfg(unix)]
fn inode(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|m| (m.dev(), m.ino()))
}

/// A private folder of this process inside another one, removed when dropped.
#[cfg(unix)]
struct Private(PathBuf);

#[cfg(unix)]
impl Private {
    fn inside(folder: &Path) -> io::Result<Private> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        for _ in 0..64 {
            let path = folder.join(format!(".{:x}{:x}", process::id(), MADE.fetch_add(1, Ordering::Relaxed)));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {} // left by a process that had the same pid
                made => return made.map(|()| Private(path)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The user that owns files of this process.
    fn user(&self) -> io::Result<u32> {
        fs::symlink_metadata(&self.0).map(|m| m.uid())
    }
}

#[cfg(unix)]
impl Drop for Private {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // usually empty; remaining files do no harm
    }
}

/// NAME-PID.sock in the default folder, which is created if it does not exist. It must belong to this user only.
#[cfg(unix)]
fn default_address(name: &str) -> io::Result<String> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|base| base.is_absolute());
    let base = runtime.clone().unwrap_or_else(|| if cfg!(target_os = "macos") { std::env::temp_dir() } else { "/tmp".into() });
    let named = |e: io::Error| fail(e.kind(), &format!("folder in {}: {e}", base.display()));
    fs::DirBuilder::new().mode(0o700).recursive(true).create(&base).map_err(named)?;
    let user = Private::inside(&base).and_then(|p| p.user()).map_err(named)?;
    let folder = base.join(if runtime.is_some() { "llmtop".to_string() } else { format!("llmtop-{user}") });
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(named(e)),
        _ => {}
    }
    let found = fs::symlink_metadata(&folder).map_err(named)?;
    let at = folder.display();
    let refuse = |why: String| Err(fail(io::ErrorKind::PermissionDenied, &why));
    if !found.is_dir() {
        return refuse(format!("{at} is not a folder: remove it, or set XDG_RUNTIME_DIR to a folder of your own"));
    }
    if found.uid() != user {
        return refuse(format!("folder {at} belongs to user {}: set XDG_RUNTIME_DIR to a folder of your own", found.uid()));
    }
    if found.mode() & 0o022 != 0 {
        return refuse(format!("other users may write to folder {at}: chmod 700 {at}"));
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(32).collect();
    Ok(format!("unix:{}/{}-{}.sock", folder.display(), name.trim_start_matches('.'), process::id()))
}

/// Creates the socket in a folder that nobody else can access, so that nobody connects before its mode is set, and
/// moves it to its final path. It locks the folder meanwhile, so that only one of two engines replaces the socket of an
/// exited one.
#[cfg(unix)]
fn listen_unix(path: &Path) -> io::Result<(Listener, String, Option<Place>)> {
    let named = |e: io::Error| fail(e.kind(), &format!("{}: {e}", path.display()));
    if path.as_os_str().len() > LONGEST_PATH {
        let why = format!("{}: the path is longer than {LONGEST_PATH} bytes", path.display());
        return Err(fail(io::ErrorKind::InvalidInput, &why));
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::DirBuilder::new().mode(0o700).recursive(true).create(folder).map_err(named)?;
    let _held = hold_folder(folder).map_err(named)?;
    reclaim(path)?;
    let private = Private::inside(folder).map_err(named)?;
    let made = private.0.join("s");
    let listener = UnixListener::bind(&made).map_err(named)?;
    fs::set_permissions(&made, fs::Permissions::from_mode(0o600)).map_err(named)?;
    fs::rename(&made, path).map_err(named)?;
    let place = Place { path: path.into(), inode: inode(path).map_err(named)? };
    Ok((Listener::Unix(listener), format!("unix:{}", path.display()), Some(place)))
}

/// Locks a folder, as emitters in other languages do. It waits at most a second for the lock.
#[cfg(unix)]
fn hold_folder(folder: &Path) -> io::Result<fs::File> {
    let file = fs::File::open(folder)?;
    for _ in 0..100 {
        match file.try_lock() {
            Err(fs::TryLockError::WouldBlock) => thread::sleep(TICK),
            _ => break, // held by another process, or not supported here
        }
    }
    Ok(file)
}

/// Removes the socket of an engine that has exited; that of a live one is an error.
#[cfg(unix)]
fn reclaim(path: &Path) -> io::Result<()> {
    let named = |e: io::Error| fail(e.kind(), &format!("{}: {e}", path.display()));
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(fail(io::ErrorKind::AlreadyExists, &format!("{} exists and is not a socket", path.display())));
        }
        found => found.map_err(named)?,
    };
    match probe(path) {
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(named),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(named(e)),
        Ok(pid) => {
            let who = pid.map_or("that does not report its pid".to_string(), |pid| format!("with pid {pid}"));
            Err(fail(io::ErrorKind::AddrInUse, &format!("{} is held by a live engine {who}", path.display())))
        }
    }
}

/// The pid of the engine that listens at a path, if its hello arrives within a second. Errors are those of connecting.
#[cfg(unix)]
fn probe(path: &Path) -> io::Result<Option<u64>> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let (sender, connected) = mpsc::channel();
    let to = path.to_path_buf();
    // A separate thread, since the backlog of a suspended engine may be full, and connecting then blocks forever.
    thread::Builder::new().spawn(move || sender.send(UnixStream::connect(to)))?;
    let mut stream = match connected.recv_timeout(PATIENCE) {
        Err(_) => return Ok(None),
        Ok(Err(e)) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Ok(stream) => stream?,
    };
    let until = Instant::now() + PATIENCE;
    let (mut hello, mut buffer) = (Vec::new(), [0; 4096]);
    while !hello.contains(&b'\n') && hello.len() < LONGEST_MESSAGE && Instant::now() < until {
        let _ = stream.set_read_timeout(Some(PATIENCE)); // it is not 0
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => hello.extend_from_slice(&buffer[..n]),
            _ => break,
        }
    }
    let line = hello.split(|&c| c == b'\n').next().unwrap_or_default();
    let line = std::str::from_utf8(line).ok().and_then(Json::parse);
    Ok(line.and_then(|hello| hello.get("pid").and_then(Json::uint)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    fn text(f: impl FnOnce(&mut Text)) -> String {
        let mut t = Text::default();
        f(&mut t);
        String::from_utf8(t.0).expect("lines are UTF-8")
    }

    /// Reproducible pseudo-random numbers.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % sides as u64) as usize
        }
    }

    #[test]
    fn strings_are_escaped() {
        for (given, want) in [
            ("plain", r#""plain""#),
            ("a\"b\\c/d", r#""a\"b\\c/d""#),
            ("\0\n\r\t\x1b\x7f", r#""\u0000\u000a\u000d\u0009\u001b\u007f""#),
            ("é€😀\u{2028}", "\"é€😀\u{2028}\""),
        ] {
            assert_eq!(text(|t| t.quote(given)), want);
            assert_eq!(Json::parse(want), Some(Json::Text(given.into())), "{want} is read back");
        }
        assert_eq!(text(|t| t.piece("▁a".as_bytes())), "\"▁a\"");
        assert_eq!(text(|t| t.piece(b"\xe2\x96")), "[226,150]");
        assert_eq!(text(|t| t.string("name", "")), "");
        assert_eq!(text(|t| t.string("name", &"é".repeat(LONGEST_TEXT))).len(), r#","name":"""#.len() + LONGEST_TEXT);
        assert_eq!((cut("aé", 2), cut("aé", 3), cut("é", 1)), ("a", "aé", ""));
    }

    #[test]
    fn numbers_are_valid_json() {
        for (v, want) in [(0.0, "0"), (-0.25, "-0.25"), (12.0, "12"), (1e300, "1e300"), (1e-7, "1e-7"), (f64::NAN, "null")] {
            assert_eq!(text(|t| t.real(v)), want);
        }
        assert_eq!(text(|t| t.real32(0.1)), "0.1");
        assert_eq!(text(|t| t.int(i64::MIN)), i64::MIN.to_string());
        assert_eq!(text(|t| t.uint(u64::MAX)), u64::MAX.to_string());
    }

    #[test]
    fn absent_readings_have_a_reason() {
        let list = [
            ("cpu", Reading::Measured(0.5)),
            ("hz", Reading::Reported(2e9)),
            ("rss", Reading::NotPermitted),
            ("q", Reading::Derived(f64::NAN)),
        ];
        assert_eq!(text(|t| readings(t, &list)), r#","cpu":0.5,"hz":[2000000000,"reported"],"rss":"not permitted","q":"undefined""#);
    }

    #[test]
    fn json_is_parsed() {
        let json = Json::parse(r#" {"a":[1,-2.5e1,true,null],"b":"x\u00e9\ud83d\ude00\ud800\n","a":12.9,"n":NaN,"i":-Infinity} "#);
        let json = json.expect("it is well formed");
        assert_eq!(json.get("a").and_then(Json::uint), Some(12));
        assert_eq!(json.get("b").and_then(Json::text).as_deref(), Some("xé😀\u{fffd}\n"));
        assert_eq!((json.get("n"), json.get("i"), json.get("none")), (None, None, None));
        for (digits, want) in [("18446744073709551615", Some(u64::MAX)), ("1.2e1", Some(12)), ("-1", None), ("1e400", None)] {
            assert_eq!(Json::parse(digits).and_then(|v| v.uint()), want, "{digits}");
        }
        assert_eq!(Json::parse("[72,105]").and_then(|v| v.text()).as_deref(), Some("Hi"));
        for wrong in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "01",
            "1.",
            "-",
            ".5",
            "+1",
            "\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\n\"",
            "{} {}",
            "nul",
            "{\"a\":1,}",
            "'a'",
        ] {
            assert_eq!(Json::parse(wrong), None, "{wrong}");
        }
        let nested = |n| "[".repeat(n) + &"]".repeat(n);
        assert!(Json::parse(&nested(Json::DEPTH)).is_some());
        assert!(Json::parse(&nested(Json::DEPTH + 1)).is_none());
        assert!(Json::parse(&"[".repeat(1 << 20)).is_none());
    }

    #[test]
    fn messages_are_parsed() {
        let line = br#"{"t":"generate","c":3,"prompt":"Hi","max":64,"temperature":0.5,"seed":18446744073709551615,"text":true,"top":999}"#;
        match read_line(line, 9) {
            Ok(Line::Control(3, "generate", Message::Generate(g))) => {
                let want = Generation {
                    prompt: Some("Hi".into()),
                    max_tokens: Some(64),
                    temperature: Some(0.5),
                    seed: Some(u64::MAX),
                    text: TextFor(9),
                    top: 255,
                    ..Generation::default()
                };
                assert_eq!(*g, want);
            }
            _ => panic!("not a generate message"),
        }
        assert!(matches!(read_line(br#"{"t":"resume","c":1}"#, 9), Ok(Line::Control(1, "pause", Message::Pause(false)))));
        assert!(matches!(read_line(br#"{"t":"sample","c":1,"every":0}"#, 9), Ok(Line::Control(1, "sample", Message::Sample(1)))));
        let hooks = Hooks { stages: true, experts: false, picks: true };
        let line = read_line(br#"{"t":"hooks","c":1,"on":["picks","stages","later"]}"#, 9);
        assert!(matches!(line, Ok(Line::Control(_, _, Message::Hooks(on))) if on == hooks));
        for (line, why) in [
            (&br#"{"t":"dance","c":1}"#[..], "unknown message"),
            (br#"{"t":"cancel","c":1}"#, "malformed line"),
            (br#"{"t":"pause"}"#, "malformed line"),
            (b"\xff", "malformed line"),
        ] {
            assert_eq!(read_line(line, 9).err(), Some(why));
        }
    }

    /// Lines of readers with random changes: none of them panics.
    #[test]
    fn hostile_lines_do_not_panic() {
        let seeds = [
            &br#"{"t":"generate","c":1,"prompt":"Once \u00e9\ud83d\ude00","ids":[1,2],"max":64,"temperature":0.7,"text":true}"#[..],
            br#"{"t":"hooks","c":2,"on":["stages","experts"]} "#,
            br#"{"t":"auth","token":"secret\\\""}"#,
            br#"{"t":"sample","c":1e2,"every":-0.5,"x":{"y":[[[null,NaN,-Infinity]]]}}"#,
        ];
        let (mut dice, mut good) = (Dice(88172645463325252), 0);
        for round in 0..40_000 {
            let mut line = seeds[round % seeds.len()].to_vec();
            for _ in 0..dice.roll(4) {
                let at = dice.roll(line.len());
                match dice.roll(3) {
                    0 => line[at] = dice.roll(256) as u8,
                    1 => line.truncate(at.max(1)),
                    _ => line.insert(at, b"{}[]\",:\\u0e-."[dice.roll(13)]),
                }
            }
            good += usize::from(read_line(&line, 9).is_ok());
        }
        assert!(good > 5_000 && good < 35_000, "{good} lines were good: the test shows nothing");
    }

    #[test]
    fn tokens_are_compared() {
        for (given, want) in [("secret", true), ("secreT", false), ("secre", false), ("secretsecret", false), ("", false)] {
            assert_eq!(same_token(given.as_bytes(), b"secret"), want, "{given}");
        }
        assert!(!same_token(b"a", b""));
    }

    #[test]
    fn events_dropped_from_the_ring_are_counted() {
        let ring = Ring::new(64);
        let event = |what| Event::new(what, 1, 7);
        let pushed = |what, n: u64| (0..n).filter(|_| ring.push(&event(what), |_| {})).count();
        assert_eq!(pushed(What::Token, 100), 56, "an eighth is kept for requests");
        assert_eq!(pushed(What::Ended, 20), 8);
        assert_eq!(pushed(What::Stage, 3), 0);
        let dropped = |k: Kind| ring.dropped[k as usize].load(Ordering::Relaxed);
        assert_eq!((dropped(Kind::Token), dropped(Kind::Request), dropped(Kind::Stage)), (44, 12, 3));
        let mut payload = Vec::new();
        let read: Vec<What> = (0..64).map_while(|at| ring.read(at, &mut payload)).map(|e| e.what).collect();
        assert_eq!(read.len(), 64);
        assert!(read[..56].iter().all(|&w| w == What::Token) && read[56..].iter().all(|&w| w == What::Ended), "the order is that of time");
        assert!(ring.read(64, &mut payload).is_none());
        ring.give_back(64);
        assert_eq!(pushed(What::Token, 1), 1);
    }

    /// Four threads push payloads of all lengths while one reads: each event is read completely and once, or counted as
    /// dropped.
    #[test]
    fn threads_share_the_ring() {
        const EACH: u64 = 5000;
        let (ring, start) = (Ring::new(256), Barrier::new(5));
        let counted = thread::scope(|s| {
            for thread in 0..4 {
                let (ring, start) = (&ring, &start);
                s.spawn(move || {
                    start.wait();
                    for i in 0..EACH {
                        let mut e = Event::new(What::Log, i, thread);
                        e.length = (i % 200) as u32;
                        ring.push(&e, |f| (0..e.length).for_each(|b| f.bytes(&[(u64::from(b) + thread + i) as u8])));
                    }
                });
            }
            let (mut at, mut next, mut payload, mut read) = (0, [0; 4], Vec::new(), 0);
            start.wait();
            while read + ring.dropped[Kind::Log as usize].load(Ordering::Relaxed) < 4 * EACH {
                let Some(e) = ring.read(at, &mut payload) else {
                    thread::yield_now();
                    continue;
                };
                at += e.cells();
                ring.give_back(e.cells());
                assert!(e.at >= next[e.request as usize], "the events of a thread stay in order");
                next[e.request as usize] = e.at + 1;
                assert_eq!(payload.len() as u64, e.at % 200);
                assert!(payload.iter().enumerate().all(|(b, &v)| v == (b as u64 + e.request + e.at) as u8));
                read += 1;
            }
            read
        });
        assert!(counted > 0);
    }

    #[test]
    fn a_batch_is_one_line() {
        let token = |at: u64, request, index, id| {
            let mut e = Event::new(What::Token, at, request);
            (e.index, e.id) = (index, id);
            e.x = [0, ABSENT, 1 | u64::from(f32::NAN.to_bits()) << 32];
            e
        };
        let line = |events: &[Event], payload: &[u8], shown: bool| {
            let mut batch = Batch::default();
            events.iter().for_each(|e| batch.add(*e, &payload[..e.length as usize], shown));
            text(|t| batch.write(t, shown))
        };
        let one = token(1391250, 7, 0, 1510);
        assert_eq!(line(&[one], &[], true), r#"{"t":"tok","a":1391250,"r":7,"i":0,"d":1510"#);
        let three = [one, token(1411263, 7, 1, 11), token(1431133, 7, 2, 290)];
        assert_eq!(line(&three, &[], true), r#"{"t":"tok","a":[1391250,20013,19870],"r":7,"i":[0,1,1],"d":[1510,11,290]"#);
        let mut pass = [token(1391250, 7, 31, 11), token(1391250, 9, 11, ABSENT32)];
        pass.iter_mut().for_each(|e| e.x[0] = 12);
        assert_eq!(line(&pass, &[], true), r#"{"t":"tok","a":[1391250,0],"r":[7,9],"i":[31,-20],"d":[11,null],"s":[12,0]"#);
        let mut rich = one;
        (rich.small, rich.flags, rich.length) = (2, 1, 14);
        rich.x = [0, 60, 3 | u64::from((-0.25f32).to_bits()) << 32];
        let payload = [b"Hi", &8u32.to_le_bytes()[..], &(-1.5f32).to_le_bytes(), &[2, 0, 1, 1]].concat();
        let want = r#"{"t":"tok","a":1391250,"r":7,"i":0,"d":1510,"n":3,"w":60,"l":-0.25,"p":"Hi","o":[[8,-1.5]],"e":[2,257]"#;
        assert_eq!(line(&[rich], &payload, true), want);
        let two = line(&[one, rich], &payload, false);
        assert!(two.ends_with(r#""n":[null,3],"w":[null,60],"l":[null,-0.25],"o":[null,[[8,-1.5]]],"e":[null,[2,257]]"#), "{two}");
    }

    #[test]
    fn the_backlog_wraps_around() {
        let mut b = Backlog { bytes: VecDeque::new(), lines: VecDeque::new(), first: 0, from: 0, own: 0, room: 100 };
        for i in 0..1000u64 {
            let line = format!("{i:0>w$}\n", w = 1 + i as usize % 37);
            while b.full(line.len()) {
                b.drop_first();
            }
            b.push(line.as_bytes(), None, Kind::Log, 1);
            let mut out = Vec::new();
            (b.first..b.next()).for_each(|n| b.copy(b.line(n).expect("it is there"), 1, &mut out));
            let numbers: Vec<u64> = std::str::from_utf8(&out).expect("lines").lines().map(|l| l.parse().expect("a number")).collect();
            assert_eq!(numbers, (b.first..=i).collect::<Vec<_>>());
            assert!(b.bytes.len() <= 100 && b.line(b.next()).is_none());
        }
    }

    #[test]
    fn stages_have_statistics() {
        let names = Names::new();
        let place = names.place("cache_lookup");
        assert_eq!(names.0[place].stats(), None);
        for (ns, hit) in [(3000, true), (1000, false), (8000, true)] {
            names.0[place].note(ns, 2, Some(hit));
        }
        let stats = names.find("cache_lookup").and_then(|p| names.0[p].stats()).expect("it has spans");
        let want = Stats {
            count: 3,
            total: Duration::from_micros(12),
            min: Duration::from_micros(1),
            max: Duration::from_micros(8),
            tokens: 6,
            lookups: 3,
            hits: 2,
        };
        assert_eq!(stats, want);
        assert_eq!((stats.mean_us(), stats.us_per_token(), stats.hit_ratio()), (Some(4.0), Some(2.0), Some(2.0 / 3.0)));
        assert_eq!((Stats::default().mean_us(), Stats::default().hit_ratio()), (None, None));
    }

    #[test]
    fn names_beyond_the_table_become_other() {
        let names = Names::new();
        let places: Vec<usize> = (0..1000).map(|i| names.place(&format!("stage {i}"))).collect();
        assert_eq!(places.iter().filter(|&&p| p == NAMES - 1).count(), 1000 - (NAMES - 1));
        assert!((0..255).all(|i| names.name(names.place(&format!("stage {i}"))) == format!("stage {i}")));
        assert_eq!((names.name(NAMES - 1), names.place(""), names.find("stage 900")), ("other", NAMES - 1, None));
    }

    #[test]
    fn invalid_metrics_are_ignored() {
        let mut e = Event::new(What::Step, 9, 0);
        (e.x[0], e.id, e.index) = (5, 1, ABSENT32);
        for (metrics, want) in [("{\"a\":\n1}", r#","fpm":{"a": 1}"#), ("{\"a\":1", ""), ("[1]", ""), ("", "")] {
            assert_eq!(text(|t| write_step(t, &e, metrics.as_bytes())), format!(r#"{{"t":"step","a":9,"dur":5,"n":1{want}"#));
        }
    }

    /// An emitter on a loopback port, and a reader that has received the state.
    fn opened(options: Options) -> (Emitter, io::BufReader<TcpStream>) {
        let top = Emitter::open(Options { address: Some("tcp:127.0.0.1:0".into()), ..options }).expect("it opens");
        let (reader, _) = reader_of(&top);
        (top, reader)
    }

    /// A reader that has received the state, and the lines up to the end of the state.
    fn reader_of(top: &Emitter) -> (io::BufReader<TcpStream>, String) {
        let mut reader = io::BufReader::new(TcpStream::connect(&top.address()["tcp:".len()..]).expect("it listens"));
        let mut line = String::new();
        while !line.ends_with("{\"t\":\"synced\"}\n") {
            io::BufRead::read_line(&mut reader, &mut line).expect("it sends the state");
        }
        (reader, line)
    }

    fn lines(reader: io::BufReader<TcpStream>) -> Vec<String> {
        io::BufRead::lines(reader).map(|l| l.expect("it ends with a bye")).collect()
    }

    #[test]
    fn spans_end_once_and_not_when_discarded() {
        let (top, reader) = opened(Options::new("spans"));
        {
            let mut outer = top.span(7, stage::PREFILL);
            top.span(7, stage::ATTENTION).layer(3).end();
            top.span(7, "nothing").discard();
            outer.tokens(12);
        }
        assert_eq!(top.all_stats().keys().collect::<Vec<_>>(), [stage::ATTENTION, stage::PREFILL]);
        assert_eq!(top.stats("nothing"), None);
        top.close();
        let stages: Vec<String> = lines(reader).into_iter().filter(|l| l.contains("\"stage\"")).collect();
        assert_eq!(stages.len(), 2, "{stages:?}");
        assert!(stages[0].ends_with(r#""stage":"attention","l":3}"#) && stages[1].ends_with(r#""stage":"prompt","n":12}"#), "{stages:?}");
    }

    #[test]
    fn text_goes_to_the_reader_that_asked_for_it() {
        let (top, asker) = opened(Options::new("text"));
        let (other, empty) = reader_of(&top);
        for request in [1, 2, 3] {
            let text = TextFor(u64::from(request == 2)); // the first reader
            top.queued(request, &Request { prompt: "secret", text, ..Request::default() });
        }
        for request in [1, 2, 3] {
            top.tokens(&[Token { request, text: b"word", ..Token::default() }]);
        }
        top.queued(4, &Request { prompt: "secret", text: TextFor(77), ..Request::default() }); // a reader that is gone
        top.tokens(&[Token { request: 4, text: b"word", ..Token::default() }, Token { request: 2, text: b"word", ..Token::default() }]);
        let (late, state) = reader_of(&top);
        for request in [1, 2, 3, 4] {
            top.finished(request, "stop", &Usage::default());
        }
        let shared = top.shared.clone();
        drop(top);
        let readers = [(asker, String::new(), "asker", (1, 2)), (other, empty, "other", (0, 0)), (late, state, "late", (0, 0))];
        for (reader, state, name, want) in readers {
            let lines = state + &lines(reader).join("\n");
            let with = |what: &str| lines.matches(what).count();
            assert_eq!((with("secret"), with("\"word\"")), want, "{name}: {lines:?}");
            assert_eq!(with("\"queued\""), 4, "{name}: {lines:?}");
        }
        assert_eq!(shared.wanted.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn text_goes_to_all_where_it_is_turned_on() {
        let (top, reader) = opened(Options { text: true, ..Options::new("text") });
        top.queued(1, &Request { prompt: "secret", ..Request::default() });
        top.tokens(&[Token { request: 1, text: b"word", ..Token::default() }]);
        let (_, late) = reader_of(&top);
        drop(top);
        assert_eq!(lines(reader).iter().filter(|l| l.contains("secret") || l.contains("word")).count(), 2);
        assert_eq!(late.matches("secret").count(), 1);
    }

    #[test]
    fn requests_that_never_end_use_bounded_memory() {
        let (top, _reader) = opened(Options::new("endless"));
        let mut state = State { csv: true, ..State::default() };
        for id in 1..=3 * LIVE as u64 {
            let e = Event { x: [0; 3], ..Event::new(What::Queued, id, id) };
            state.queued(&e, Text::default(), Text::default(), &top.shared);
        }
        assert_eq!((state.live.len(), state.place.len()), (LIVE, LIVE));
        assert_eq!(state.live.values().next().map(|l| l.id), Some(2 * LIVE as u64 + 1), "the oldest are forgotten");
        for layer in 0..2 * SUMS as u32 {
            let sum = Sum { place: 1, layer, at: 5, took: 2, tokens: 1 };
            state.note_stage(3 * LIVE as u64, sum, &top.shared);
            state.note_stage(3 * LIVE as u64, Sum { layer: 0, ..sum }, &top.shared);
            state.note_stage(1, sum, &top.shared); // it is forgotten
        }
        let sums = &state.find(3 * LIVE as u64).expect("it lives").sums;
        assert_eq!((sums.len(), sums[0].took, state.missing), (SUMS, 2 * (2 * SUMS as u64 + 1), SUMS as u64));
        assert_eq!(state.rows.len(), 2 * SUMS);
    }

    #[test]
    fn counters_of_the_engine_replace_those_kept_here() {
        let (top, reader) = opened(Options::new("counters"));
        top.token(1, 0, 5);
        top.counter("generated_tokens").add(40);
        top.counter("generated_tokens").add(2);
        top.counter("temperature").set(36.6);
        (0..100).for_each(|i| top.counter(&format!("c{i}")).add(1));
        top.close();
        let last = lines(reader).into_iter().rfind(|l| l.starts_with(r#"{"t":"count""#)).expect("it counts");
        let json = Json::parse(&last).expect("it is JSON");
        let c = json.get("c").expect("there are counters");
        assert_eq!(c.get("generated_tokens").and_then(Json::uint), Some(42));
        assert_eq!(c.get("temperature").and_then(Json::real), Some(36.6));
        assert_eq!(last.matches("\"c").count(), 2 + OWN - 2, "t, c and as many of the others as there is room for: {last}");
    }

    #[test]
    fn another_model_has_its_own_picks() {
        let model = |layers, experts| Model { layers, experts, experts_used: 1, ..Model::default() };
        let (top, reader) = opened(Options { model: Some(model(1, 2)), ..Options::new("models") });
        top.picks(Phase::Decode, 0, &[1, 9]);
        top.picks(Phase::Decode, usize::MAX, &[0]);
        top.loaded(&model(2, 3), Some(Instant::now()));
        top.picks(Phase::Prompt, 1, &[2, 2]);
        top.picks_total(Phase::Decode, 0, &[5, 6, 7, 8]);
        top.loaded(&Model::default(), None);
        top.picks(Phase::Decode, 0, &[0]);
        top.loaded(&model(1, 2), None);
        top.picks(Phase::Decode, 0, &[0]);
        top.close();
        let experts: Vec<String> = lines(reader).into_iter().filter(|l| l.starts_with(r#"{"t":"experts""#)).collect();
        assert!(
            experts.last().is_some_and(|l| l.ends_with(r#""layers":1,"experts":2,"used":1,"p":[0,0],"pt":0,"d":[1,0],"dt":1}"#)),
            "{experts:?}"
        );
    }

    /// Of many engines that find the socket of an exited one, exactly one replaces it.
    #[cfg(unix)]
    #[test]
    fn one_engine_replaces_an_exited_one() {
        let folder = Private::inside(&std::env::temp_dir()).expect("there is room for files");
        let path = folder.0.join("engine.sock");
        drop(UnixListener::bind(&path).expect("it is new")); // dead: its file is left
        let (start, options) = (Barrier::new(8), || Options { address: Some(format!("unix:{}", path.display())), ..Options::new("heir") });
        let opened: Vec<_> = thread::scope(|s| {
            let open = || {
                start.wait();
                Emitter::open(options())
            };
            let all: Vec<_> = (0..8).map(|_| s.spawn(open)).collect();
            all.into_iter().map(|t| t.join().expect("it returns")).collect()
        });
        let won = opened.iter().filter(|o| o.is_ok()).count();
        assert_eq!(won, 1);
        for why in opened.iter().filter_map(|o| o.as_ref().err()) {
            assert!(why.to_string().ends_with(&format!("is held by a live engine with pid {}", process::id())), "{why}");
        }
        assert_eq!(fs::metadata(&path).expect("the socket is there").mode() & 0o777, 0o600);
        drop(opened);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(&folder.0).expect("the folder is there").count(), 0, "nothing is left");
    }
}
