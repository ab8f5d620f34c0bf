package discover

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/source/probe"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// silent counts the connections to a port.
type silent struct {
	net.Listener
	came chan struct{}
}

func listenSilently(t *testing.T) *silent {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s := &silent{l, make(chan struct{}, 100)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.came <- struct{}{}
			_ = c.Close()
		}
	}()
	return s
}

func (s *silent) at() netip.AddrPort { return netip.MustParseAddrPort(s.Addr().String()) }

// TestSystemdStartsOnConnection never connects to a port for which systemd would start a server, and does once that
// server runs.
func TestSystemdStartsOnConnection(t *testing.T) {
	for name, tt := range map[string]struct {
		comm, args string
		shared     bool // a running service has the socket too
		asked      bool
	}{
		"systemd":                   {"systemd", "/sbin/init", false, false},
		"systemd of a user":         {"systemd", "/usr/lib/systemd/systemd|--user", false, false},
		"systemd-socket-activate":   {"systemd-socket-", "systemd-socket-activate|-l|8080|llama-server", false, false},
		"systemd, the service runs": {"systemd", "/sbin/init", true, true},
		"systemd-socket-proxyd":     {"systemd-socket-", "/usr/lib/systemd/systemd-socket-proxyd|127.0.0.1:9", false, true},
		"something without systemd": {"nginx", "nginx", false, true},
	} {
		l := listenSilently(t)
		tr := newTree(t)
		tr.process(1, 0, tt.args, l.at())
		tr.write("1/comm", tt.comm+"\n")
		if tt.shared {
			tr.process(50, 1, "/usr/bin/server")
			tr.link("50/fd/3", "socket:[1001]")
		}
		r := find(t, tr, l.at().Port())
		if asked := len(l.came) > 0; asked != tt.asked {
			t.Errorf("%s: asked: %t", name, asked)
		}
		noted := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "did not ask "+l.at().String()+": systemd starts") })
		if noted == tt.asked || len(r.Engines) != 0 {
			t.Errorf("%s: notes %q, engines %+v", name, r.Notes, r.Engines)
		}
	}
}

// TestSystemdUnits looks for the units where the open files of systemd cannot be read.
func TestSystemdUnits(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string // in the root; PORT stands for the port
		asked bool
	}{
		"no unit":            {nil, true},
		"a unit":             {map[string]string{"etc/systemd/system/llama.socket": "[Socket]\nListenStream=PORT\n"}, false},
		"an address":         {map[string]string{"usr/lib/systemd/system/llama.socket": "[Socket]\nListenStream = 127.0.0.1:PORT\n"}, false},
		"another address":    {map[string]string{"usr/lib/systemd/system/llama.socket": "[Socket]\nListenStream=10.0.0.1:PORT\n"}, true},
		"a path":             {map[string]string{"usr/lib/systemd/system/llama.socket": "[Socket]\nListenStream=/run/PORT\n"}, true},
		"a drop-in":          {map[string]string{"usr/lib/systemd/system/llama.socket": "[Socket]\nListenStream=1\n", "usr/lib/systemd/system/llama.socket.d/a.conf": "[Socket]\nListenStream=\nListenStream=PORT\n"}, false},
		"an overridden unit": {map[string]string{"usr/lib/systemd/system/llama.socket": "ListenStream=PORT\n", "etc/systemd/system/llama.socket": "ListenStream=1\n"}, true},
		"a running service":  {map[string]string{"usr/lib/systemd/system/llama.socket": "ListenStream=PORT\n", "sys/fs/cgroup/system.slice/llama.service/cgroup.procs": ""}, true},
		"another service":    {map[string]string{"usr/lib/systemd/system/llama.socket": "ListenStream=PORT\nService=proxy.service\n", "sys/fs/cgroup/system.slice/llama.service/cgroup.procs": ""}, false},
		"one a connection":   {map[string]string{"usr/lib/systemd/system/llama.socket": "ListenStream=PORT\nAccept=yes\n", "sys/fs/cgroup/system.slice/llama.service/cgroup.procs": ""}, false},
	} {
		l := listenSilently(t)
		tr := newTree(t)
		tr.process(1, 0, "/sbin/init", l.at())
		tr.write("1/comm", "systemd\n")
		tr.remove("1/fd")
		for path, text := range tt.files {
			tr.write("../"+path, strings.ReplaceAll(text, "PORT", strconv.Itoa(int(l.at().Port()))))
		}
		r := find(t, tr, l.at().Port())
		if asked := len(l.came) > 0; asked != tt.asked {
			t.Errorf("%s: asked: %t; notes %q", name, asked, r.Notes)
		}
	}
}

func FuzzUnit(f *testing.F) {
	f.Add([]byte("[Socket]\nListenStream=127.0.0.1:8080\nListenStream=\nAccept=yes\nService=a.service"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		var u unit
		u.read(text)
		for _, at := range u.listens {
			listensAt(at, netip.MustParseAddrPort("127.0.0.1:8080"))
		}
	})
}

// TestProbes lists who can be watched by probes: known servers, runners of Ollama, and programs that link llama.cpp,
// whose ports are not asked.
func TestProbes(t *testing.T) {
	llama, ollama, own := serve(t, 200, llamaAnswers(t)), serve(t, 200, ollamaAnswers(t)), listenSilently(t)
	tr := newTree(t)
	tr.process(10, 1, "/usr/bin/llama-server|--port|"+port(llama), llama.at())
	tr.process(20, 1, "ollama|serve", ollama.at())
	tr.process(21, 20, "llama-server|--model|/blobs/sha256-12")
	tr.process(30, 1, "node|chat.js", own.at())
	tr.write("30/maps", "7f0c-7f0d r-xp 00000000 fe:00 1234   /app/libllama.so\n")
	tr.process(40, 1, "llama-bench|-m|/m/b.gguf")
	tr.process(50, 1, "llama-swap|--config|a.yaml")
	tr.process(60, 1, "python3|train.py")
	r := Find(t.Context(), Options{Root: tr.root, Ports: []uint16{}, NoSockets: true, Within: within * 100, inspect: func(pid int) (string, error) {
		switch pid {
		case 10, 21, 30, 40:
			return "/m/a.gguf", nil
		}
		return "", probe.ErrAbsent
	}})
	got := map[int]string{}
	for _, f := range r.Engines {
		for _, w := range f.Ways() {
			got[f.PID] += w.By + " "
		}
		for _, x := range f.Runners {
			for _, w := range x.Ways() {
				got[x.PID] += w.By + " "
			}
		}
		if f.PID == 30 && (f.Kind != engine.Llama || f.Model != "a.gguf" || f.Address != "pid:30" || f.State != Ready && f.State != NeedsRoot) {
			t.Errorf("%+v", f)
		}
	}
	want := map[int]string{10: "HTTP probes ", 20: "HTTP ", 21: "probes ", 30: "probes ", 40: "probes "}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if len(own.came) > 0 {
		t.Error("the port of an unknown program was asked")
	}
}
