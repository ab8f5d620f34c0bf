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

	"github.com/llmtop/llmtop/profiler/clean"
)

// Origin is how a folder was found.
type Origin string

// The origins, most preferred first.
const (
	Named     Origin = "LLMTOP_LLAMA_DIR" // set by the user
	Installed Origin = "installed"        // installed by Install
	System    Origin = "system"           // in the system's library path
)

// Candidate is a folder that contains llama.cpp, or was expected to.
type Candidate struct {
	Origin  Origin `json:"origin"`
	Dir     string `json:"dir"`
	Release string `json:"release,omitempty"` // from the file names, for example "0.5.0"; "" if they have none
	Device  string `json:"device,omitempty"`  // devices besides the CPU: "cuda", "vulkan", "metal" or several; "" if none

	// Paths of the libraries, "" if missing.
	Llama string `json:"llama,omitempty"`
	GGML  string `json:"ggml,omitempty"`
	Base  string `json:"ggml_base,omitempty"`

	Why string `json:"unusable,omitempty"` // why it cannot be used, "" if it can
}

// Usable reports whether the libraries can be loaded, as far as their headers show.
func (c Candidate) Usable() bool { return c.Why == "" }

const (
	ownOS   = goruntime.GOOS
	ownArch = goruntime.GOARCH
)

// libraryName matches file names of shared libraries on all systems: libllama.so, libllama.so.0.5.0,
// libllama.v0.5.0.so, libllama.metal.v0.4.0.dylib, llama.v0.4.0.dll. Its groups are the name, a device, and the version
// in two positions.
var libraryName = regexp.MustCompile(`^(?:lib)?([a-z-]+?)(?:\.([a-z]+))?(?:\.v?([0-9][0-9.]*))?\.(?:so|dylib|dll)(?:\.([0-9][0-9.]*))?$`)

// Look inspects a folder. It returns an error if the folder does not contain llama.cpp.
func Look(dir string, origin Origin) (Candidate, error) { return look(dir, origin, ownOS, ownArch) }

func look(dir string, origin Origin, goos, goarch string) (Candidate, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Candidate{}, withoutPath(err)
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
		return Candidate{}, errors.New("no llama.cpp in the folder")
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

// shorter keeps the shorter of two paths: the one with the shortest version in its name.
func shorter(kept *string, path string) bool {
	if *kept != "" && len(*kept) <= len(path) {
		return false
	}
	*kept = path
	return true
}

// devices lists the devices of llama.cpp's backends besides the CPU.
func devices(backends []string) string {
	var found []string
	for _, d := range []string{"cuda", "hip", "metal", "sycl", "vulkan"} {
		if slices.Contains(backends, d) {
			found = append(found, d)
		}
	}
	return strings.Join(found, "+")
}

// check returns why the libraries cannot be loaded on a platform.
func (c *Candidate) check(goos, goarch string) error {
	for _, l := range []struct{ name, path string }{{"libggml", c.GGML}, {"libggml-base", c.Base}} {
		if l.path == "" {
			return fmt.Errorf("%s is missing next to libllama", l.name)
		}
	}
	for _, path := range []string{c.Llama, c.GGML, c.Base} {
		b, err := inspect(path)
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", filepath.Base(path), withoutPath(err))
		}
		if b.os != goos || b.arch != goarch {
			return fmt.Errorf("built for %s/%s, llmtop needs %s/%s", b.os, b.arch, goos, goarch)
		}
		for _, needs := range b.needs {
			parts := libraryName.FindStringSubmatch(needs)
			if parts == nil || !strings.HasPrefix(parts[1], "ggml") {
				continue
			}
			if _, err := os.Stat(filepath.Join(c.Dir, needs)); err != nil {
				return fmt.Errorf("%s needs %s, which is missing in the folder", filepath.Base(path), needs)
			}
		}
	}
	return nil
}

// buildData is the file of a package that describes its build.
const buildData = "_nlcBuildMetadata.json"

// releaseOf returns the release of llama.cpp in a package's build data, "" without build data.
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
	return clean.Cut(strings.TrimPrefix(built.BuildOptions.LlamaCpp.Release, "v"), maxRelease)
}

// maxRelease bounds the name of a release, in characters.
const maxRelease = 32

// withoutPath returns a file system error without its path, which the message contains already.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
