package bench

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine"
)

// clientWatch measures the load of this process while it benchmarks an engine in another process. It receives the
// samples of this machine.
type clientWatch struct {
	probe *lagProbe

	mu           sync.Mutex // guards the fields below
	cpu, machine timeIntegral
	pause        float64 // GC pause in ns
	paused       bool    // pause was reported
}

// timeIntegral is the integral of a reading over the time in which it was reported.
type timeIntegral struct{ total, time float64 }

func (s *timeIntegral) add(r event.Reading, interval int64) {
	if r.OK() {
		s.total, s.time = s.total+r.V*float64(interval), s.time+float64(interval)
	}
}

// mean returns the mean over time, "not reported" without data.
func (s *timeIntegral) mean() event.Reading {
	if s.time == 0 {
		return event.Absent(event.NotReported)
	}
	return report.Measured(s.total / s.time)
}

// Emit implements event.Sink.
func (w *clientWatch) Emit(e event.Event) {
	h, ok := e.Data.(*event.Host)
	if !ok || e.Kind != event.KindHost {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cpu.add(h.Self.CPU, h.Interval)
	w.machine.add(h.CPU, h.Interval)
	if h.Self.GCPause.OK() {
		w.pause, w.paused = w.pause+h.Self.GCPause.V, true
	}
}

// during measures while run runs. sample samples this machine; the caller takes another sample after run.
func (w *clientWatch) during(ctx context.Context, sample func(), run func() error) error {
	sample()
	w.mu.Lock()
	w.cpu, w.machine, w.pause, w.paused = timeIntegral{}, timeIntegral{}, 0, false
	w.mu.Unlock()
	w.probe = startProbe(ctx)
	defer w.probe.stop()
	return run()
}

// result returns the measured load of this process.
func (w *clientWatch) result() report.Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := report.Client{
		CPU: w.cpu.mean(), MachineCPU: w.machine.mean(), Cores: report.Measured(float64(goruntime.GOMAXPROCS(0))), ReadLag: report.Describe(w.probe.lags),
		GCPause: event.Absent(event.NotReported),
	}
	if w.paused {
		c.GCPause = report.Measured(w.pause / 1e9)
	}
	return c
}

// lagProbe sends messages over a loopback connection to this process and measures how long each waits to be read, which
// is how long the messages of the engine wait.
type lagProbe struct {
	lags []float64 // in s; owned by the reading goroutine until it ends
	end  context.CancelFunc
	done sync.WaitGroup
}

// Interval and maximum number of messages.
const (
	probeEvery = 5 * time.Millisecond
	maxProbes  = 1 << 20
)

// startProbe starts to send. Without a loopback interface it measures nothing.
func startProbe(ctx context.Context) *lagProbe {
	ctx, cancel := context.WithCancel(ctx)
	p := &lagProbe{end: cancel}
	from, to, err := selfConnected()
	if err != nil {
		return p
	}
	clock := engine.NewClock()
	p.done.Go(func() {
		defer from.Close()
		due := time.Now()
		timer := time.NewTimer(probeEvery)
		defer timer.Stop()
		var message [8]byte
		for range maxProbes {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			due = due.Add(probeEvery)
			timer.Reset(time.Until(due.Add(probeEvery)))
			at := clock.Now()
			if late := time.Since(due); late >= probeEvery { // this process stood still, and read no messages of that time either
				at -= event.Time(late)
			}
			binary.LittleEndian.PutUint64(message[:], uint64(at))
			if _, err := from.Write(message[:]); err != nil {
				return
			}
		}
	})
	p.done.Go(func() {
		defer to.Close()
		var message [8]byte
		for {
			if _, err := io.ReadFull(to, message[:]); err != nil {
				return
			}
			lag := clock.Now() - event.Time(binary.LittleEndian.Uint64(message[:]))
			p.lags = append(p.lags, float64(lag)/1e9)
		}
	})
	return p
}

func (p *lagProbe) stop() {
	p.end()
	p.done.Wait()
}

// selfConnected returns both ends of a TCP connection of this process to itself.
func selfConnected() (from, to net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if from, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	if to, err = l.Accept(); err != nil {
		_ = from.Close()
		return nil, nil, err
	}
	return from, to, nil
}
