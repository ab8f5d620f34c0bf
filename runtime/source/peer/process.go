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
	startTimeout = 2 * time.Minute  // for the start of a server: a loaded machine is slow
	stopTimeout  = 20 * time.Second // for a server to stop before it is killed
	tries        = 3                // attempts to find a port that no other process takes meanwhile
	logBytes     = 256 << 10        // size of the end of the server's log that is kept
)

// Process is a server started for a test. It ends with the test.
type Process struct {
	// URL is its address, without a trailing slash: http://127.0.0.1:PORT.
	URL string
	// PID is its process id.
	PID int

	server
	port int
	cmd  *exec.Cmd
	log  tail
	done chan struct{} // closed when the process has ended
}

// Log returns the end of the server's log.
func (p *Process) Log() string { return p.log.String() }

// Stop stops the server as its users would, or kills it after 20 s. It returns when the process has ended.
func (p *Process) Stop() {
	_ = interrupt(p.cmd.Process)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
	}
	p.Kill()
}

// Kill kills the server and its children, like a crash. It returns when the process has ended.
func (p *Process) Kill() {
	killGroup(p.cmd.Process)
	<-p.done
}

// server describes how to start a server.
type server struct {
	name    string
	command func(port int) *exec.Cmd // starts it on a port of 127.0.0.1
	ready   string                   // path that answers when it is ready, see await
}

// Start runs a server on a free port of 127.0.0.1, by the command for it, and waits until it is ready: until it answers at
// a path. The server stops when the test ends; if the test fails, the end of its log is printed.
func Start(tb testing.TB, name, ready string, command func(port int) *exec.Cmd) *Process {
	tb.Helper()
	s := server{name, command, ready}
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
	tb.Fatalf("start %s: %v", name, failure)
	return nil
}

// Again restarts a killed or stopped server at the same address.
func (p *Process) Again(tb testing.TB) *Process {
	tb.Helper()
	again, err := try(p.server, p.port)
	if err != nil {
		tb.Fatalf("start %s again: %v", p.name, err)
	}
	again.endWith(tb)
	return again
}

// endWith stops the server when the test ends.
func (p *Process) endWith(tb testing.TB) {
	tb.Cleanup(func() {
		p.Stop()
		if tb.Failed() {
			tb.Logf("%s wrote at the end:\n%s", p.name, p.Log())
		}
	})
}

func try(s server, port int) (*Process, error) {
	p := &Process{URL: "http://127.0.0.1:" + strconv.Itoa(port), port: port, server: s, cmd: s.command(port), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = attributes()
	p.cmd.WaitDelay = stopTimeout
	started := make(chan error)
	go func() {
		// A process that dies with its parent dies with the thread that started it, so this thread stays until then.
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

// await waits until the server answers at a path: 200, or 405 where it takes only POST. It fails if the server ends or does not get ready in time.
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
			return fmt.Errorf("%s gave no answer within %v", path, startTimeout)
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
	return resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusMethodNotAllowed
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// tail keeps the end of the data written to it.
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
