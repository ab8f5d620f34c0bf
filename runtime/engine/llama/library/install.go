package library

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Stage is a part of an installation.
type Stage string

// The stages of an installation, in order. Fetch is skipped for a given archive; a folder of libraries is only copied.
const (
	Fetch  Stage = "fetch"
	Check  Stage = "check"
	Unpack Stage = "unpack"
	Copy   Stage = "copy"
)

// Options selects what Install installs. The zero value fetches the package without GPU support for this platform.
type Options struct {
	From   string // an archive, a folder that contains it, or a folder of self-built libraries; "": fetch with npm
	Dest   string // the folder in which the package gets its own folder; "": DataFolder
	Device string // as in Package.Device

	// Report is called with the progress, from one goroutine: done of total bytes, both 0 if not available. It may be
	// nil.
	Report func(s Stage, what string, done, total int64)

	// Packages replaces the pinned packages; nil: use those.
	Packages []Package
}

// Result describes what Install did.
type Result struct {
	Candidate Candidate
	Already   bool // it was installed before; nothing was done
	Checked   bool // the archive was compared with the pinned hash; false for self-built libraries
}

// Install installs the libraries of llama.cpp in the user's data folder. A failed installation leaves no files and
// keeps the previous one. Install may be called repeatedly and by several processes at the same time.
func Install(ctx context.Context, o Options) (Result, error) {
	if err := o.setDefaults(); err != nil {
		return Result{}, fmt.Errorf("install llama.cpp: %w", err)
	}
	r, err := o.install(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("install llama.cpp: %w", err)
	}
	return r, nil
}

func (o *Options) setDefaults() error {
	if o.Packages == nil {
		o.Packages = packages
	}
	if o.Report == nil {
		o.Report = func(Stage, string, int64, int64) {}
	}
	if o.Dest != "" {
		return nil
	}
	var err error
	o.Dest, err = DataFolder()
	return err
}

// install is Install with defaults filled in.
func (o *Options) install(ctx context.Context) (Result, error) {
	archive, libraries, err := o.source()
	if err != nil {
		return Result{}, err
	}
	if libraries != "" {
		return o.copyOwn(ctx, libraries)
	}
	p, err := pick(o.Packages, ownOS, ownArch, o.Device)
	if err != nil {
		return Result{}, err
	}
	final := filepath.Join(o.Dest, p.Folder())
	if c, err := Look(librariesIn(final), Installed); o.From == "" && err == nil && c.Usable() {
		return Result{Candidate: c, Already: true}, nil
	}
	stage, done, err := o.stage()
	if err != nil {
		return Result{}, err
	}
	defer done()
	if archive == "" {
		o.Report(Fetch, p.Spec(), 0, p.Size)
		if archive, err = fetch(ctx, p, stage); err != nil {
			return Result{}, err
		}
	}
	fresh := filepath.Join(stage, "package")
	if err := o.extract(ctx, p, archive, fresh); err != nil {
		return Result{}, err
	}
	c, err := activate(fresh, filepath.FromSlash(p.libraries()), final)
	return Result{Candidate: c, Checked: true}, err
}

// source returns what Options.From is: an archive, a folder of libraries, or neither if it is not set.
func (o *Options) source() (archive, libraries string, err error) {
	if o.From == "" {
		return "", "", nil
	}
	info, err := os.Stat(o.From)
	if err != nil {
		return "", "", fmt.Errorf("read %s: %w", o.From, withoutPath(err))
	}
	if !info.IsDir() {
		return o.From, "", nil
	}
	p, err := pick(o.Packages, ownOS, ownArch, o.Device)
	if path := filepath.Join(o.From, p.archive()); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path, "", nil
		}
	}
	for _, dir := range []string{o.From, librariesIn(o.From), librariesIn(filepath.Join(o.From, "package"))} {
		if c, err := Look(dir, Installed); err == nil {
			if !c.Usable() {
				return "", "", fmt.Errorf("use %s: %s", dir, c.Why)
			}
			return "", dir, nil
		}
	}
	return "", "", fmt.Errorf("neither %s nor libllama found in %s", p.archive(), o.From)
}

// staleAge is the age at which the temporary folder of a killed installation is removed.
const staleAge = 24 * time.Hour

// stage creates a temporary folder next to the packages. done removes it.
func (o *Options) stage() (dir string, done func(), err error) {
	if err := os.MkdirAll(o.Dest, 0o755); err != nil {
		return "", nil, fmt.Errorf("make folder %s: %w", o.Dest, withoutPath(err))
	}
	old, _ := filepath.Glob(filepath.Join(o.Dest, ".install-*")) // the pattern is well-formed
	for _, dir := range old {
		if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > staleAge {
			_ = os.RemoveAll(dir) // an error only wastes disk space
		}
	}
	dir, err = os.MkdirTemp(o.Dest, ".install-")
	if err != nil {
		return "", nil, fmt.Errorf("make folder in %s: %w", o.Dest, withoutPath(err))
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

// extract verifies an archive and unpacks it into a new folder.
func (o *Options) extract(ctx context.Context, p Package, archive, into string) error {
	f, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("read %s: %w", archive, withoutPath(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read %s: %w", archive, withoutPath(err))
	}
	o.Report(Check, filepath.Base(archive), 0, 0)
	if info.Size() != p.Size {
		return fmt.Errorf("%w, %s: it has %d bytes, expected %d", ErrWrongArchive, p.archive(), info.Size(), p.Size)
	}
	if err := verify(f, p.Integrity); err != nil {
		return err
	}
	if err := os.Mkdir(into, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	defer root.Close()
	o.Report(Unpack, p.Name, 0, 0)
	return unpack(interruptible{ctx, f}, root, maxFiles, maxBytes, func(n int64) { o.Report(Unpack, p.Name, n, 0) })
}

// activate moves an unpacked package to its final folder, if its libraries can be used.
func activate(fresh, libraries, final string) (Candidate, error) {
	c, err := Look(filepath.Join(fresh, libraries), Installed)
	if err == nil && !c.Usable() {
		err = errors.New(c.Why)
	}
	if err != nil {
		return Candidate{}, fmt.Errorf("use the libraries: %w", err)
	}
	former := fresh + ".former"
	if err := os.Rename(final, former); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Candidate{}, fmt.Errorf("replace %s: %w", final, err)
	}
	if err := os.Rename(fresh, final); err != nil {
		_ = os.Rename(former, final) // restore the previous installation, if any
		return Candidate{}, fmt.Errorf("move to %s: %w", final, err)
	}
	return Look(filepath.Join(final, libraries), Installed)
}

// copyOwn copies self-built libraries.
func (o *Options) copyOwn(ctx context.Context, libraries string) (Result, error) {
	stage, done, err := o.stage()
	if err != nil {
		return Result{}, err
	}
	defer done()
	fresh := filepath.Join(stage, "package")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return Result{}, fmt.Errorf("make folder: %w", err)
	}
	o.Report(Copy, libraries, 0, 0)
	entries, err := os.ReadDir(libraries)
	if err != nil {
		return Result{}, fmt.Errorf("read %s: %w", libraries, withoutPath(err))
	}
	for _, e := range entries {
		if !isLlamaFile(e.Name()) {
			continue
		}
		if err := duplicate(ctx, libraries, fresh, e.Name()); err != nil {
			return Result{}, fmt.Errorf("copy %s: %w", filepath.Join(libraries, e.Name()), withoutPath(err))
		}
	}
	c, err := activate(fresh, "", filepath.Join(o.Dest, "local-"+ownOS+"-"+ownArch))
	return Result{Candidate: c}, err
}

// isLlamaFile reports whether a file belongs to llama.cpp: a library, or the build data.
func isLlamaFile(name string) bool {
	parts := libraryName.FindStringSubmatch(name)
	return name == buildData || parts != nil && (strings.HasPrefix(parts[1], "llama") || strings.HasPrefix(parts[1], "ggml"))
}

// duplicate copies a file between folders. Links to files in the same folder stay links, as libraries have several
// names.
func duplicate(ctx context.Context, from, to, name string) error {
	source := filepath.Join(from, name)
	if target, err := os.Readlink(source); err == nil && filepath.Base(target) == target && isLlamaFile(target) {
		return os.Symlink(target, filepath.Join(to, name))
	}
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(to, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, interruptible{ctx, in})
	return errors.Join(err, out.Close())
}

// interruptible is a reader that ends when ctx ends.
type interruptible struct {
	ctx context.Context
	io.Reader
}

func (r interruptible) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(b)
}
