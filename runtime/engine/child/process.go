// Package child runs an engine in a separate process, so that a crash of the engine becomes an error message and does
// not end llmtop. The process is the same program with a hidden command. The channels between the processes:
//
//   - a socket in a folder that only this user can access, removed after the connection is made: events and the
//     messages of
//     docs/event-protocol.md;
//   - the child's standard input: what to load, then changes of pace and texts to encode; its end means that the parent
//     has exited;
//   - its standard output: answers; other output there and on standard error is log.
package child

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// Command is the hidden command that starts the child, unless Options override it. It must call Serve.
const Command = "engine-child"

const (
	// grace is how long the process may take to end after a request to end.
	grace = 5 * time.Second
	// patience is how long to wait for the remaining events of a process that has ended.
	patience = 5 * time.Second
	// pollInterval is the polling interval while the process starts.
	pollInterval = 2 * time.Millisecond
)

// Options configure a Process.
type Options struct {
	Program []string         // program and arguments; nil: this program with Command
	Spec    any              // passed to the prepare function of Serve in the child, as JSON
	Clock   engine.Clock     // shared with the other sources
	Engine  event.EngineInfo // data available before the engine reports, for example its name
}

// Process is an engine in a separate process. It is an engine.Source and an engine.Runner; its methods may be called
// from any goroutine.
type Process struct {
	*socket.Runner
	opt     Options
	dir     string // folder of the socket
	address string
	cmd     *exec.Cmd
	journal *journal
	calls   atomic.Uint64 // numbers of questions in use
	waiting sync.Map      // chan answer of each question without one, by its number
	exited  chan struct{} // closed when the process has ended
	broken  chan struct{} // closed when the connection has ended
	breaks  func()        // closes broken

	mu     sync.Mutex // guards the fields below
	stdin  io.WriteCloser
	closed bool // whether stdin is closed
}

// opening is the first line that the child reads.
type opening struct {
	Address string          `json:"address"`
	Spec    json.RawMessage `json:"spec"`
}

// Start starts the process. The model is loaded by Run. A caller that does not call Run must call Close.
func Start(opt Options) (*Process, error) {
	p := &Process{opt: opt, exited: make(chan struct{}), broken: make(chan struct{}), journal: &journal{now: opt.Clock.Now}}
	p.breaks = sync.OnceFunc(func() { close(p.broken) })
	if err := p.prepare(); err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}
	spec, err := json.Marshal(opt.Spec)
	if err == nil {
		err = p.spawn()
	}
	if err != nil {
		_ = p.Close()
		return nil, fmt.Errorf("start engine: %w", err)
	}
	_ = p.send(opening{p.address, spec}) // fails if the process has ended already, which Run reports
	return p, nil
}

// prepare creates the folder of the socket and the runner.
func (p *Process) prepare() (err error) {
	if p.dir, err = folder(); err != nil {
		return err
	}
	p.address = "unix:" + filepath.Join(p.dir, "engine.sock")
	if p.Runner, err = socket.NewOwner(p.address, p.opt.Clock, p.adapt); err != nil {
		_ = os.Remove(p.dir)
	}
	return err
}

// folder creates a folder that only this user can access. Its path is short: some systems limit socket paths to 103
// bytes.
func folder() (string, error) {
	dir := os.TempDir()
	if len(dir) > 60 && goruntime.GOOS != "windows" {
		dir = "/tmp"
	}
	return os.MkdirTemp(dir, "llmtop-")
}

// command returns the command to start.
func (o *Options) command() (*exec.Cmd, error) {
	if o.Program != nil {
		return exec.Command(o.Program[0], o.Program[1:]...), nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self, Command)
	c.Args[0] = os.Args[0] // the name by which the program may identify itself
	return c, nil
}

// spawn starts the program. It keeps a thread until the child ends, because Linux kills the child with the thread that
// started it.
func (p *Process) spawn() (err error) {
	if p.cmd, err = p.opt.command(); err != nil {
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr = p.journal.stream(p.answered), p.journal.stream(nil)
	p.cmd.WaitDelay = patience
	p.cmd.SysProcAttr = attributes()
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	started := make(chan error)
	go func() {
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
		err := p.cmd.Start()
		if err == nil {
			defer tether(p.cmd.Process.Pid)()
		}
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait() // the result is in ProcessState
		p.journal.end()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		p.cmd = nil
		return err
	}
	return nil
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// send writes a line to the child.
func (p *Process) send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return engine.ErrStopped
	}
	_, err = p.stdin.Write(append(line, '\n'))
	return err
}

// Close ends the process, if it still runs, and waits until it has ended. It asks first and kills after a timeout.
func (p *Process) Close() error {
	defer p.removeSocket()
	p.mu.Lock()
	if p.stdin != nil && !p.closed {
		p.closed = true
		_ = p.stdin.Close() // fails if the child has exited already
	}
	p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	select {
	case <-p.exited:
	case <-time.After(p.allowance()):
		p.journal.note("the engine did not end in time and was killed")
		_ = p.cmd.Process.Kill() // fails if the process ends at this moment
		<-p.exited
	}
	return nil
}

// allowance returns how long the process may take to end. A stale process gets no time, because it will not end by
// itself.
func (p *Process) allowance() time.Duration {
	if _, link := p.State(); link == event.LinkStale {
		return 0
	}
	return grace
}

// removeSocket removes the socket and its folder, which may be removed already.
func (p *Process) removeSocket() {
	_ = os.Remove(filepath.Join(p.dir, "engine.sock"))
	_ = os.Remove(p.dir)
}

// listening waits until the child listens. It returns false if the process or ctx ends first.
func (p *Process) listening(ctx context.Context) bool {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if _, err := os.Lstat(filepath.Join(p.dir, "engine.sock")); err == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-p.exited:
			return false
		case <-tick.C:
		}
	}
}
