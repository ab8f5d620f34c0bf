//go:build unix && !linux

package gguf

func wantHugePages([]byte) {}
