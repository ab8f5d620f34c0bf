package recording

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
)

// queueSize is how many events wait for the recorder at most, 192 bytes each in two buffers: 6 MB.
const queueSize = 1 << 14

// blockSize is the size of a frame in bytes of lines, unless the flush interval ends first.
const blockSize = 256 << 10

// The defaults of RecordOptions.
const (
	DefaultSegmentBytes = 64 << 20
	DefaultSegments     = 8
	DefaultFlush        = time.Second
)

// RecordOptions configure a Recorder. Zero values mean the defaults.
type RecordOptions struct {
	Now          func() event.Time // the clock of the event timestamps
	Epoch        int64             // wall clock at time 0, Unix ns
	Program      string            // name and version of the recording program
	SegmentBytes int64             // a segment of this size is followed by the next one
	Segments     int               // segments kept, at least 2: the first one and the newest ones
	Flush        time.Duration     // longest time until an event is written
	Replace      bool              // overwrite an existing recording; otherwise Record returns an error
	MultiEngine  bool              // of several engines; each emits into its own sink, see AddEngine
	Conditions   *Conditions       // written to the header; nil: none

	create func(name string) (output, error) // for tests
	first  func(output) output
}

// Recorder is an event.Sink that writes events to a file. It never blocks: events that find its queue full are dropped
// and counted. A write error ends the recording; all later events count as dropped.
type Recorder struct {
	queue *event.Queue[catchup.Entry]
	now   func() event.Time
	flush time.Duration
	out   *writer

	stop, done chan struct{}
	once       sync.Once

	// Used by the recorder's goroutine only.
	batch         []catchup.Entry
	last          event.Time // the newest arrival: producers stamp at once, but times in a recording never decrease
	block         block
	waiting       event.Drops // events in the block, by kind: they count as dropped if it cannot be written
	state         catchup.State
	recordedDrops event.Drops // drops that the recording reports

	mu      sync.Mutex // guards what follows
	status  RecordStatus
	engines []EngineEntry
}

// RecordStatus is the progress of a recording.
type RecordStatus struct {
	Events  uint64 // written
	Bytes   int64  // bytes written in all segments
	Segment int    // number of the current segment
	Dropped event.Drops
	Err     error // the error that ended the recording
}

// Record starts recording to path. It returns a one-line error if the file cannot be written, exists already, or is in
// use by another recorder.
func Record(path string, opt RecordOptions) (*Recorder, error) {
	r, err := newRecorder(path, opt)
	if err != nil {
		return nil, fmt.Errorf("record to %s: %w", path, err)
	}
	go r.run()
	return r, nil
}

func newRecorder(path string, opt RecordOptions) (*Recorder, error) {
	if opt.SegmentBytes <= 0 {
		opt.SegmentBytes = DefaultSegmentBytes
	}
	if opt.Segments <= 0 {
		opt.Segments = DefaultSegments
	}
	if opt.Flush <= 0 {
		opt.Flush = DefaultFlush
	}
	file, err := claim(path, opt.Replace)
	if err != nil {
		return nil, err
	}
	return recorderTo(file, path, opt)
}

// recorderTo is newRecorder with the first segment. It does not run yet.
func recorderTo(file output, path string, opt RecordOptions) (*Recorder, error) {
	if opt.create == nil {
		opt.create = create
	}
	enc, err := newEncoder()
	if err != nil {
		return nil, err
	}
	w := &writer{
		path: path, size: opt.SegmentBytes, keep: max(opt.Segments, 2), create: opt.create, first: file, enc: enc,
		header: Header{ID: rand.Text(), Program: opt.Program, Epoch: opt.Epoch, MultiEngine: opt.MultiEngine, Conditions: opt.Conditions},
	}
	if opt.first != nil {
		w.first = opt.first(file)
	}
	if err := w.begin(w.first, opt.Now()); err != nil {
		w.close()
		return nil, err
	}
	return &Recorder{
		queue: event.NewQueue[catchup.Entry](queueSize), now: opt.Now, flush: opt.Flush, out: w,
		stop: make(chan struct{}), done: make(chan struct{}), state: catchup.State{Limits: stateLimits},
	}, nil
}

// Emit implements event.Sink.
func (r *Recorder) Emit(e event.Event) { r.emit(&e, 0) }

// emit stamps and queues an event of an engine.
func (r *Recorder) emit(e *event.Event, engine int) {
	r.queue.Put(catchup.Entry{Event: *e, Arrived: r.now(), Engine: engine}, e.Kind)
}

// Status returns the progress of the recording. It is safe for concurrent use.
func (r *Recorder) Status() RecordStatus {
	r.mu.Lock()
	s := r.status
	r.mu.Unlock()
	s.Dropped = r.queue.Drops()
	return s
}

// Done returns a channel that is closed when the recording has ended, by Close or an error.
func (r *Recorder) Done() <-chan struct{} { return r.done }

// Close writes the queued events and ends the recording. It returns the error that ended the recording earlier, if any.
func (r *Recorder) Close() error {
	r.queue.Close()
	r.once.Do(func() { close(r.stop) })
	<-r.done
	return r.Status().Err
}
