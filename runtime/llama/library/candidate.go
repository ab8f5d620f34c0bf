package library

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strings"
)

// Origin is why a folder was looked into.
type Origin string

// The origins, in the order in which their candidates are preferred.
const (
	Named     Origin = "LLMTOP_LLAMA_DIR" // the user named it
	Installed Origin = "installed"        // Install put it there
	System    Origin = "system"           // the system looks for libraries there
)

// Candidate is a folder in which there is a llama.cpp, or in which there should be one.
type Candidate struct {
	Origin  Origin `json:"origin"`
	Dir     string `json:"dir"`
	Release string `json:"release,omitempty"` // of llama.cpp as far as the files' names tell, for example "0.5.0"; "" if they do not
	Device  string `json:"device,omitempty"`  // what it computes on beside the processor: "cuda", "vulkan", "metal" or several; "" if nothing

	// The libraries' files, "" for one that is not there.
	Llama string `json:"llama,omitempty"`
	GGML  string `json:"ggml,omitempty"`
	Base  string `json:"ggml_base,omitempty"`

	Why string `json:"unusable,omitempty"` // why it cannot be used, "" if it can
}

// Usable says whether it can be loaded as far as its files' headers tell.
func (c Candidate) Usable() bool { return c.Why == "" }

const (
	ownOS   = goruntime.GOOS
	ownArch = goruntime.GOARCH
)

// libraryName takes apart the file names of shared libraries on all systems: libllama.so, libllama.so.0.5.0, libllama.v0.5.0.so,
// libllama.metal.v0.4.0.dylib, llama.v0.4.0.dll. Its groups are the name, a device, and the version in two places.
var libraryName = regexp.MustCompile(`^(?:lib)?([a-z-]+?)(?:\.([a-z]+))?(?:\.v?([0-9][0-9.]*))?\.(?:so|dylib|dll)(?:\.([0-9][0-9.]*))?$`)

// Look says what there is in a folder. An error means that there is no llama.cpp in it at all.
func Look(dir string, origin Origin) (Candidate, error) { return look(dir, origin, ownOS, ownArch) }

func look(dir string, origin Origin, goos, goarch string) (Candidate, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Candidate{}, plain(err)
	}
	c := Candidate{Origin: origin, Dir: dir}
	var backends []string
	for _, e := range entries {
		parts := libraryName.FindStringSubmatch(e.Name())
		if parts == nil {
			continue
		}
		switch name := parts[1]; {
		case name == "llama":
			if shorter(&c.Llama, filepath.Join(dir, e.Name())) {
				c.Release = parts[3] + parts[4]
			}
		case name == "ggml":
			shorter(&c.GGML, filepath.Join(dir, e.Name()))
		case name == "ggml-base":
			shorter(&c.Base, filepath.Join(dir, e.Name()))
		case strings.HasPrefix(name, "ggml-"):
			backends = append(backends, strings.TrimPrefix(name, "ggml-"))
		}
	}
	if c.Llama == "" {
		return Candidate{}, errors.New("there is no llama.cpp in it")
	}
	if built := releaseOf(dir); built != "" {
		c.Release = built
	}
	c.Device = devices(backends)
	if err := c.check(goos, goarch); err != nil {
		c.Why = err.Error()
	}
	return c, nil
}

// shorter keeps the shorter of two paths: the one with the least version in its name.
func shorter(kept *string, path string) bool {
	if *kept != "" && len(*kept) <= len(path) {
		return false
	}
	*kept = path
	return true
}

// devices lists what the backends of llama.cpp compute on beside the processor.
func devices(backends []string) string {
	var found []string
	for _, d := range []string{"cuda", "hip", "metal", "sycl", "vulkan"} {
		if slices.Contains(backends, d) {
			found = append(found, d)
		}
	}
	return strings.Join(found, "+")
}

// check says why the libraries cannot be loaded on a platform.
func (c *Candidate) check(goos, goarch string) error {
	for _, l := range []struct{ name, path string }{{"libggml", c.GGML}, {"libggml-base", c.Base}} {
		if l.path == "" {
			return fmt.Errorf("there is no %s beside libllama", l.name)
		}
	}
	for _, path := range []string{c.Llama, c.GGML, c.Base} {
		b, err := inspect(path)
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", filepath.Base(path), plain(err))
		}
		if b.os != goos || b.arch != goarch {
			return fmt.Errorf("it is for %s/%s, llmtop is for %s/%s", b.os, b.arch, goos, goarch)
		}
		for _, needs := range b.needs {
			parts := libraryName.FindStringSubmatch(needs)
			if parts == nil || !strings.HasPrefix(parts[1], "ggml") {
				continue
			}
			if _, err := os.Stat(filepath.Join(c.Dir, needs)); err != nil {
				return fmt.Errorf("%s needs %s, which is not beside it", filepath.Base(path), needs)
			}
		}
	}
	return nil
}

// buildData is the file of a package that says what it was built from.
const buildData = "_nlcBuildMetadata.json"

// releaseOf is the release of llama.cpp that a package's build data names, "" without them.
func releaseOf(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, buildData))
	if err != nil {
		return ""
	}
	var built struct {
		BuildOptions struct {
			LlamaCpp struct{ Release string }
		}
	}
	if json.Unmarshal(data, &built) != nil {
		return ""
	}
	return printable(strings.TrimPrefix(built.BuildOptions.LlamaCpp.Release, "v"))
}

// printable is a short text without what a terminal would not print.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s)
	return s[:min(len(s), 32)]
}

// plain is an error of the file system without the path, which is told beside it.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
