package peer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	startTimeout = 2 * time.Minute  // for a server to answer: a machine under load is slow
	stopTimeout  = 20 * time.Second // for a server to end by itself before it is killed
	tries        = 3                // of finding a port that nobody else takes in the meantime
	logBytes     = 64 << 10         // of a server's log that are kept: the end
)

// Process is a server that was started for a test, and ends with it.
type Process struct {
	// URL is where it answers, without a slash at the end: http://127.0.0.1:PORT.
	URL string
	// PID is its process.
	PID int

	port int
	as   server
	cmd  *exec.Cmd
	log  tail
	done chan struct{} // closed when the process has been waited for
}

// Log is the end of what the server has written so far.
func (p *Process) Log() string { return p.log.String() }

// Stop has the server end as its users would, or kills it when it does not within 20 s. It returns when the process is gone.
func (p *Process) Stop() {
	_ = interrupt(p.cmd.Process)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
	}
	p.Kill()
}

// Kill ends the server and whatever it started at once, as a crash would. It returns when the process is gone.
func (p *Process) Kill() {
	killGroup(p.cmd.Process)
	<-p.done
}

// server is what has to be known to start one.
type server struct {
	name    string
	command func(port int) *exec.Cmd // how it is started on a port of 127.0.0.1
	ready   string                   // the path that answers 200 once it is ready
}

// start runs a server on a free port and waits for it to be ready. It is stopped when the test ends; if the test has failed, the
// end of its log is told.
func start(tb testing.TB, s server) *Process {
	tb.Helper()
	var failure error
	for range tries {
		port, err := freePort()
		if err != nil {
			tb.Fatal(err)
		}
		p, err := try(s, port)
		if err == nil {
			p.endWith(tb)
			return p
		}
		failure = err
	}
	tb.Fatalf("start %s: %v", s.name, failure)
	return nil
}

// Again starts the server anew at the same address, once it has been killed or stopped.
func (p *Process) Again(tb testing.TB) *Process {
	tb.Helper()
	again, err := try(p.as, p.port)
	if err != nil {
		tb.Fatalf("start %s again: %v", p.as.name, err)
	}
	again.endWith(tb)
	return again
}

// endWith has the server stopped when the test ends.
func (p *Process) endWith(tb testing.TB) {
	tb.Cleanup(func() {
		p.Stop()
		if tb.Failed() {
			tb.Logf("%s wrote at the end:\n%s", p.as.name, p.Log())
		}
	})
}

func try(s server, port int) (*Process, error) {
	p := &Process{URL: "http://127.0.0.1:" + strconv.Itoa(port), port: port, as: s, cmd: s.command(port), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = attributes()
	p.cmd.WaitDelay = stopTimeout
	started := make(chan error)
	go func() {
		// A process that is to die with its parent dies with the thread that started it: this one stays until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.PID = p.cmd.Process.Pid
	if err := p.await(s.ready); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%w; it wrote\n%s", err, p.Log())
	}
	return p, nil
}

// await returns when the server answers 200 at a path, or with an error when it has ended or the time is over.
func (p *Process) await(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		if answers(ctx, p.URL+path) {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("it ended: %v", p.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("%s gave no 200 within %v", path, startTimeout)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - logBytes; over > 0 {
		t.text = t.text[:copy(t.text, t.text[over:])]
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}
