// Package probe watches a process that links llama.cpp, without its help: eBPF programs at a few of its functions copy
// what it passes to them. It emits the events of every other source.
package probe

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target amd64,arm64 -type head -type pass -type batch -type batch_one -type batch_many -type picked -type picked_many -type tokenized -type sampled -type removed -type drafted -type synced -type called -type transfer probes bpf/probe.c -- -O2 -g -Wall -Werror -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target amd64,arm64 cuda bpf/cuda.c -- -O2 -g -Wall -Werror -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu
