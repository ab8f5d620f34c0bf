package trace

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// blockSize is how many bytes of lines make a frame, unless the flush interval ends first.
const blockSize = 256 << 10

// The defaults of RecordOptions.
const (
	DefaultSegmentBytes = 64 << 20
	DefaultSegments     = 8
	DefaultFlush        = time.Second
)

// RecordOptions configure a Recorder. Zero stands for the default where there is one.
type RecordOptions struct {
	Codec        Codec
	Now          func() event.Time // the clock that the sources stamp with
	Epoch        int64             // wall clock at time 0, Unix ns
	Program      string            // who records, with its version
	SegmentBytes int64             // a segment that has grown to this size is followed by another
	Segments     int               // kept, at least 2: the first one and the newest ones
	Flush        time.Duration     // how long an event waits before it is written
	Replace      bool              // an existing recording is overwritten; without it, it is refused
	Several      bool              // of several engines, each of which emits into its own Source

	create func(name string) (output, error) // for tests
	first  func(output) output
}

// Recorder is an event.Sink that writes what it receives to a file. It never blocks: events that find its queue full are dropped and
// counted. A write error ends the recording; everything after it counts as lost.
type Recorder struct {
	queue *queue
	flush time.Duration
	codec Codec
	out   *writer

	stop, done chan struct{}
	once       sync.Once

	// Used by the recorder's goroutine only.
	batch   []arrival
	block   block
	waiting event.Lost // events in the block, by kind: lost if it cannot be written
	line    []byte
	state   state
	told    event.Lost // losses that the recording tells of

	mu      sync.Mutex // guards what follows
	status  RecordStatus
	sources []Source
}

// RecordStatus is how a recording goes.
type RecordStatus struct {
	Events  uint64 // written
	Bytes   int64  // written, all segments together
	Segment int    // the number of the one that is written
	Lost    event.Lost
	Err     error // what ended the recording before it was closed
}

// Record begins to record to path. The error is one line: the file cannot be written, another recorder writes to it, or it exists.
func Record(path string, opt RecordOptions) (*Recorder, error) {
	r, err := newRecorder(path, opt)
	if err != nil {
		return nil, fmt.Errorf("record to %s: %w", path, err)
	}
	go r.run()
	return r, nil
}

func newRecorder(path string, opt RecordOptions) (*Recorder, error) {
	if opt.create == nil {
		opt.create = create
	}
	if opt.SegmentBytes <= 0 {
		opt.SegmentBytes = DefaultSegmentBytes
	}
	if opt.Segments <= 0 {
		opt.Segments = DefaultSegments
	}
	if opt.Flush <= 0 {
		opt.Flush = DefaultFlush
	}
	enc, err := newEncoder()
	if err != nil {
		return nil, err
	}
	file, err := claim(path, opt.Replace)
	if err != nil {
		return nil, err
	}
	w := &writer{
		path: path, size: opt.SegmentBytes, keep: max(opt.Segments, 2), create: opt.create, first: file, enc: enc,
		header: Header{Recording: rand.Text(), Program: opt.Program, Codec: opt.Codec.Name(), Epoch: opt.Epoch, Several: opt.Several},
	}
	if opt.first != nil {
		w.first = opt.first(file)
	}
	if err := w.begin(w.first, opt.Now()); err != nil {
		w.close()
		return nil, err
	}
	return &Recorder{
		queue: newQueue(queueSize, opt.Now), flush: opt.Flush, codec: opt.Codec, out: w,
		stop: make(chan struct{}), done: make(chan struct{}), block: block{several: opt.Several},
	}, nil
}

// Emit implements event.Sink.
func (r *Recorder) Emit(e event.Event) { r.queue.emit(&e, 0) }

// Status is how the recording goes. It may be called from any goroutine.
func (r *Recorder) Status() RecordStatus {
	r.mu.Lock()
	s := r.status
	r.mu.Unlock()
	s.Lost = r.queue.losses()
	return s
}

// Done is closed once the recording has ended, by Close or an error.
func (r *Recorder) Done() <-chan struct{} { return r.done }

// Close writes what has arrived and ends the recording. The error is what ended it before, if something did.
func (r *Recorder) Close() error {
	r.queue.close()
	r.once.Do(func() { close(r.stop) })
	<-r.done
	return r.Status().Err
}
