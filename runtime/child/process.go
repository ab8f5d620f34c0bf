// Package child runs an engine in a process of its own, so that a crash in the engine is a line on the screen and not the end of
// llmtop. The process is this very program with a hidden command. What goes back and forth:
//
//   - events, and the messages of docs/event-protocol.md, over a socket in a folder that is this user's alone and is gone as soon as the
//     connection stands;
//   - over the child's standard input what to load, later changes of pace and texts to encode, and, by its end, that the parent is gone;
//   - over its standard output the answers, and over that and standard error the log.
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
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/socket"
)

// Command is the hidden command that this program is started with, unless Options say otherwise. It must call Serve.
const Command = "engine-child"

const (
	// grace is how long a process that was asked to end may take.
	grace = 5 * time.Second
	// patience is how long an answer is waited for, and the rest of the events of a process that has ended.
	patience = 5 * time.Second
	// lookEvery is how often is looked for what nobody announces, while the process starts.
	lookEvery = 2 * time.Millisecond
)

// Options configure a Process.
type Options struct {
	Program []string      // with arguments; nil: this program with Command
	Spec    any           // what Serve hands to prepare in the child, as JSON
	Clock   runtime.Clock // shared with the other sources
	Engine  event.Engine  // what is known before the engine speaks, for example its name
}

// Process is an engine in a process of its own. It is a runtime.Source and a runtime.Runner; its methods may be called from any goroutine.
type Process struct {
	opt     Options
	dir     string // of the socket
	address string
	cmd     *exec.Cmd
	client  *socket.Client
	journal *journal
	answers *answers
	relay   *relay
	exited  chan struct{} // closed when the process has ended
	calls   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	stdin   io.WriteCloser
	closed  bool  // stdin
	stopped error // set once Run has ended
}

// opening is the first line that the child reads.
type opening struct {
	Address string          `json:"address"`
	Spec    json.RawMessage `json:"spec"`
}

// Start starts the process, which loads nothing before Run. Whoever does not call Run must call Close.
func Start(opt Options) (*Process, error) {
	p := &Process{opt: opt, exited: make(chan struct{}), journal: &journal{now: opt.Clock.Now}}
	p.answers = newAnswers(p.journal.stream())
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
	_ = p.tell(opening{p.address, spec}) // fails if the process has ended already, of which Run tells
	p.relay = newRelay(fmt.Sprintf("the engine's process %d", p.PID()), p.Cancel)
	return p, nil
}

// prepare makes the folder of the socket and what will watch it.
func (p *Process) prepare() (err error) {
	if p.dir, err = folder(); err != nil {
		return err
	}
	p.address = "unix:" + filepath.Join(p.dir, "engine.sock")
	if p.client, err = socket.Dial(p.address, "", p.opt.Clock); err != nil {
		_ = os.Remove(p.dir)
	}
	return err
}

// folder makes a folder for this user alone, at a path that leaves room for the name of a socket: some systems take 103 bytes.
func folder() (string, error) {
	dir := os.TempDir()
	if len(dir) > 60 && goruntime.GOOS != "windows" {
		dir = "/tmp"
	}
	return os.MkdirTemp(dir, "llmtop-")
}

// command is what to start.
func (o *Options) command() (*exec.Cmd, error) {
	if o.Program != nil {
		return exec.Command(o.Program[0], o.Program[1:]...), nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self, Command)
	c.Args[0] = os.Args[0] // by which the program may know who it is
	return c, nil
}

// spawn starts the program. A thread of its own stays with it to its end, since Linux ends the child with the thread that started it.
func (p *Process) spawn() (err error) {
	if p.cmd, err = p.opt.command(); err != nil {
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr = p.answers, p.journal.stream()
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
		_ = p.cmd.Wait() // ProcessState tells how it ended
		p.journal.end()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		p.cmd = nil
		return err
	}
	return nil
}

// PID is the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// tell writes a line to the child.
func (p *Process) tell(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return runtime.ErrStopped
	}
	_, err = p.stdin.Write(append(line, '\n'))
	return err
}

// Close ends the process, if it still runs, and waits until it is gone: it is asked to, and killed when that does not help.
func (p *Process) Close() error {
	defer p.tidy()
	p.mu.Lock()
	if p.stdin != nil && !p.closed {
		p.closed = true
		_ = p.stdin.Close() // broken if the child is gone already
	}
	p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	select {
	case <-p.exited:
	case <-time.After(p.allowance()):
		p.journal.say("the engine does not end and is killed")
		_ = p.cmd.Process.Kill() // fails if it ends at this moment
		<-p.exited
	}
	return nil
}

// allowance is how long the process may take to end: one that is not heard any more will not do so by itself.
func (p *Process) allowance() time.Duration {
	if p.relay != nil && p.relay.stale() {
		return 0
	}
	return grace
}

// tidy removes the socket and its folder, both of which may be gone.
func (p *Process) tidy() {
	_ = os.Remove(filepath.Join(p.dir, "engine.sock"))
	_ = os.Remove(p.dir)
}

// listening waits until the child listens. It says false if that will not be.
func (p *Process) listening(ctx context.Context) bool {
	tick := time.NewTicker(lookEvery)
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
