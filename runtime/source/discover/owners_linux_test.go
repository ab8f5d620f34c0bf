package discover

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"
)

// TestOwners: a port has the engine that listens there as its owner, and none if that is not certain.
func TestOwners(t *testing.T) {
	at := func(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
	tr := newTree(t)
	tr.process(10, 1, "llama-server|--port|8080", at("127.0.0.1:8080"))
	tr.process(20, 1, "vllm|serve|m|--port|8000", at("0.0.0.0:8000"))
	tr.process(21, 20, "vllm|serve|m|--port|8000", at("0.0.0.0:8000"), at("127.0.0.1:5555"))
	tr.process(30, 1, "ollama|serve", at("127.0.0.1:11434"))
	tr.process(31, 30, "llama-server|--port|40000", at("127.0.0.1:40000"))
	tr.process(40, 1, "docker-proxy|-host-port|9000", at("0.0.0.0:9000"))
	tr.process(50, 1, "llama-server|--port|9100", at("192.168.1.2:9100"))
	tr.process(60, 1, "llama-server|--port|9200", at("127.0.0.1:9200"))
	tr.process(61, 1, "llama-server|--port|9200", at("127.0.0.1:9200"))
	for pid, numbers := range map[int]string{70: "70", 80: "80\t1", 90: "90", 91: "91"} { // of another user
		tr.process(pid, 1, fmt.Sprint("llama-server|--port|", min(7000+pid, 7090)), netip.AddrPortFrom(at("127.0.0.1:1").Addr(), uint16(7000+pid)))
		tr.write(fmt.Sprint(pid, "/status"), "Name:\tx\nNSpid:\t"+numbers+"\nUid:\t1\n")
		tr.remove(fmt.Sprint(pid, "/fd"))
	}
	seen := look(tr.root)
	want := map[uint16]int{7070: 70, 8080: 10, 8000: 20, 5555: 21, 11434: 30, 40000: 31}
	if got := seen.owners(); !maps.Equal(got, want) {
		t.Errorf("the owners are %v, want %v", got, want)
	}
}

// TestListens: only a program of this name, in this network, listens at the port.
func TestListens(t *testing.T) {
	at := func(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
	tr := newTree(t)
	tr.process(10, 1, "/usr/bin/prometheus|--config.file|p.yml", at("0.0.0.0:9090"))
	tr.process(20, 1, "ssh|-L|9091:prometheus:9090|gpu1", at("127.0.0.1:9091"))
	tr.process(30, 1, "docker-proxy|-host-port|9092", at("0.0.0.0:9092"))
	for port, want := range map[uint16]bool{9090: true, 9091: false, 9092: false, 9093: false} {
		if got := listens(tr.root, "prometheus", port); got != want {
			t.Errorf("port %d: %t, want %t", port, got, want)
		}
	}
}

// TestRunners: an Ollama has the llama-servers that it started as runners, and nothing else.
func TestRunners(t *testing.T) {
	at := func(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
	tr := newTree(t)
	tr.process(30, 1, "ollama|serve", at("127.0.0.1:11434"))
	tr.process(31, 30, "llama-server|--model|/models/blobs/sha256-1a|--port|40000", at("127.0.0.1:40000"))
	tr.process(32, 30, "llama-server|--model|/models/blobs/sha256-2b|--port|40001") // does not listen yet
	tr.process(33, 30, "llama-server")
	tr.process(10, 1, "llama-server|--port|8080", at("127.0.0.1:8080"))
	seen := look(tr.root)
	want := map[string]string{"http://127.0.0.1:40000": "sha256-1a", "http://127.0.0.1:40001": "sha256-2b"}
	if got := seen.runnersOf(11434); !maps.Equal(got, want) {
		t.Errorf("Ollama's llama-servers are %v, want %v", got, want)
	}
	tr.remove("30/fd") // another user's: its ports are hidden
	seen = look(tr.root)
	if got := seen.runnersOf(11434); !maps.Equal(got, want) {
		t.Errorf("another user's Ollama: its llama-servers are %v, want %v", got, want)
	}
	for _, port := range []uint16{8080, 40000, 1} {
		if got := seen.runnersOf(port); len(got) > 0 {
			t.Errorf("port %d leads to %v", port, got)
		}
	}
}
