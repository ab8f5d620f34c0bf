package library

import (
	"crypto/sha512"
	"encoding/base64"
	"strings"
	"testing"
)

func TestPinsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages {
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Integrity, "sha512-"))
		if err != nil || len(sum) != sha512.Size {
			t.Errorf("%s: %q is not a SHA-512", p.Name, p.Integrity)
		}
		if p.Size < 1<<20 || seen[p.Name] || seen[p.Integrity] {
			t.Errorf("%s: the pin is that of another package, or its size is %d", p.Name, p.Size)
		}
		seen[p.Name], seen[p.Integrity] = true, true
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, goarch := range []string{"amd64", "arm64"} {
			if _, err := pick(packages, goos, goarch, ""); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestPinnedListsDevices(t *testing.T) {
	for _, c := range []struct{ goos, goarch, device, want string }{
		{"linux", "amd64", "tpu", "available for cuda and vulkan"},
		{"darwin", "arm64", "cuda", "no llama.cpp package for \"cuda\" on darwin/arm64"},
		{"plan9", "386", "", "no llama.cpp package for plan9/386"},
	} {
		if _, err := pick(packages, c.goos, c.goarch, c.device); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v", c, err)
		}
	}
	p, err := pick(packages, "linux", "amd64", "vulkan")
	if err != nil || p.Spec() != "@node-llama-cpp/linux-x64-vulkan@3.22.1" || p.archive() != "node-llama-cpp-linux-x64-vulkan-3.22.1.tgz" {
		t.Errorf("got %+v, %v", p, err)
	}
}
