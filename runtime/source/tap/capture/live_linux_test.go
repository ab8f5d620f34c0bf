package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// openLive opens a live source, or skips the test.
func openLive(t testing.TB, port uint16) *Source {
	t.Helper()
	src, err := OpenLive(port)
	if errors.Is(err, fs.ErrPermission) {
		t.Skip("needs root or CAP_NET_RAW: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	return src
}

// listen returns a listener on loopback that streams chunks to each client, one every gap, after it has sent a byte.
func listen(t testing.TB, address string, chunks int, gap time.Duration, chunk []byte) (port uint16) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go serve(l, chunks, gap, chunk)
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// serve answers the connections of a listener until that is closed.
func serve(l net.Listener, chunks int, gap time.Duration, chunk []byte) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				return
			}
			next := time.Now()
			for range chunks {
				if _, err := c.Write(chunk); err != nil {
					return
				}
				next = next.Add(gap)
				time.Sleep(time.Until(next))
			}
		}()
	}
}

// fetch connects to a server of listen and reads all it sends.
func fetch(address string) (int64, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := c.Write([]byte("?")); err != nil {
		return 0, err
	}
	return io.Copy(io.Discard, c)
}

// TestExtend loads the extended filter.
func TestExtend(t *testing.T) {
	program, err := extend(filter(8000, 1))
	if errors.Is(err, fs.ErrPermission) {
		t.Skip("needs root or CAP_BPF: ", err)
	}
	if err != nil {
		t.Fatalf("%+v", err)
	}
	_ = program.Close()
}

// TestLive hears connections on loopback: every byte once, who they were, and that they closed.
func TestLive(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			chunk := bytes.Repeat([]byte("token"), 100_000) // larger than a packet of loopback
			port := listen(t, net.JoinHostPort(host, "0"), 4, time.Millisecond, chunk)
			src := openLive(t, port)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			const clients = 5
			var heard []*ear
			a := NewAssembler(Options{Port: port, Open: func(f *Flow) Listener {
				return &ear{flow: *f, ended: func(e *ear) {
					if heard = append(heard, e); len(heard) == clients {
						cancel()
					}
				}}
			}})
			go func() {
				for range clients {
					_, _ = fetch(net.JoinHostPort(host, fmt.Sprint(port)))
				}
			}()
			if err := a.Run(ctx, src); err != nil {
				t.Fatal(err)
			}
			if len(heard) != clients {
				t.Errorf("heard %d connections, want %d", len(heard), clients)
			}
			handshakes := true
			if program, err := extend(filter(port, 1)); err != nil {
				t.Log("without the time of handshakes: ", err)
				handshakes = false
			} else {
				_ = program.Close()
			}
			for _, e := range heard {
				if handshakes && e.flow.RTT <= e.flow.ServerRTT {
					t.Errorf("round-trip time %v", e.flow.RTT)
				}
				if e.bytes != [2]int{1, 4 * len(chunk)} || e.gaps != 0 || e.ending != Closed || !e.flow.Whole || !e.flow.AtServer || !e.flow.AtClient || e.flow.ServerRTT <= 0 {
					t.Errorf("heard %+v", e)
				}
			}
			if a.Losses() != (Losses{}) {
				t.Errorf("%+v", a.Losses())
			}
		})
	}
}

// event is what the streams of a benchmark send at a time.
var event = []byte("data: " + strings.Repeat("x", 242) + "\n\n")

// sending names the environment of the process that sends: streams, events a second of each, seconds.
const sending = "LLMTOP_TEST_SENDER"

func TestMain(m *testing.M) {
	var streams, perSecond, seconds int
	if _, err := fmt.Sscan(os.Getenv(sending), &streams, &perSecond, &seconds); err == nil {
		send(streams, perSecond, seconds)
		return
	}
	goleak.VerifyTestMain(m)
}

// sender starts a process that, after a line, streams on loopback, and returns where to write the line, and its port.
func sender(b *testing.B, streams, perSecond, seconds int) (start io.Writer, port uint16) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %d", sending, streams, perSecond, seconds))
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if _, err := fmt.Fscan(out, &port); err != nil {
		b.Fatal(err)
	}
	return in, port
}

// send is the process of sender. It waits at the end for its input to end.
func send(streams, perSecond, seconds int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	go serve(l, perSecond*seconds, time.Second/time.Duration(perSecond), event)
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	_, _ = fmt.Scanln()
	var all sync.WaitGroup
	for i := range streams {
		all.Go(func() {
			time.Sleep(time.Second * time.Duration(i) / time.Duration(streams))
			_, _ = fetch(l.Addr().String())
		})
	}
	all.Wait()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// cpu returns the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLive hears streams on loopback. It reports packets that the kernel dropped, chunks heard and sent, and the
// share of a core that the reader takes: the sender is another process.
func BenchmarkLive(b *testing.B) {
	for _, load := range []struct{ streams, perSecond int }{{300, 50}, {2000, 10}} {
		b.Run(fmt.Sprintf("%dx%d", load.streams, load.perSecond), func(b *testing.B) {
			benchLive(b, load.streams, load.perSecond, 5)
		})
	}
}

func benchLive(b *testing.B, streams, perSecond, seconds int) {
	for b.Loop() {
		start, port := sender(b, streams, perSecond, seconds)
		src := openLive(b, port)
		ctx, cancel := context.WithTimeout(b.Context(), time.Duration(seconds+30)*time.Second)
		var total ear
		ended := 0
		a := NewAssembler(Options{Port: port, Open: func(f *Flow) Listener {
			return &ear{ended: func(e *ear) {
				total.bytes[Server] += e.bytes[Server]
				total.gaps += e.gaps
				if ended++; ended == streams {
					cancel()
				}
			}}
		}})
		before, began := cpu(), time.Now()
		_, _ = io.WriteString(start, "go\n")
		if err := a.Run(ctx, src); err != nil {
			b.Fatal(err)
		}
		cancel()
		b.ReportMetric(100*float64(cpu()-before)/float64(time.Since(began)), "%cpu")
		b.ReportMetric(float64(a.Losses().Dropped), "dropped")
		b.ReportMetric(float64(total.gaps), "gaps")
		b.ReportMetric(float64(total.bytes[Server])/float64(len(event)), "heard")
		b.ReportMetric(float64(streams*perSecond*seconds), "sent")
	}
}
