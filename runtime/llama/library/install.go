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

// Stage is a part of an install.
type Stage string

// The stages of an install, in order. An archive of the user's is not fetched; a folder of libraries is only copied.
const (
	Fetch  Stage = "fetch"
	Check  Stage = "check"
	Unpack Stage = "unpack"
	Copy   Stage = "copy"
)

// Options say what Install gets from where. The zero value fetches what every machine of this platform can use.
type Options struct {
	From   string // the package's archive, or a folder with it, or a folder of libraries that the user built; "": npm fetches the archive
	Dest   string // the folder in which the package gets one of its own; "": DataFolder
	Device string // as in Package.Device

	// Report is told what goes on, from one goroutine: done of total bytes, both 0 where it is not known. nil: nobody is.
	Report func(s Stage, what string, done, total int64)

	// Packages take the place of the pinned ones; nil: those.
	Packages []Package
}

// Result is what Install did.
type Result struct {
	Candidate Candidate
	Already   bool // it was there before, and nothing was done
	Checked   bool // the archive was compared with the pinned hash; not so for libraries that the user built
}

// Install gets the libraries of llama.cpp into the user's data folder. What went wrong half-way leaves nothing behind, and whatever was
// there before stays. It may be called again, and by several processes.
func Install(ctx context.Context, o Options) (Result, error) {
	if err := o.settle(); err != nil {
		return Result{}, fmt.Errorf("install llama.cpp: %w", err)
	}
	r, err := o.install(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("install llama.cpp: %w", err)
	}
	return r, nil
}

func (o *Options) settle() error {
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

// install is Install with settled options.
func (o *Options) install(ctx context.Context) (Result, error) {
	archive, libraries, err := o.source()
	if err != nil {
		return Result{}, err
	}
	if libraries != "" {
		return o.adopt(ctx, libraries)
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
	c, err := place(fresh, filepath.FromSlash(p.libraries()), final)
	return Result{Candidate: c, Checked: true}, err
}

// source tells what Options.From is: an archive, or a folder of libraries, or neither if there is none.
func (o *Options) source() (archive, libraries string, err error) {
	if o.From == "" {
		return "", "", nil
	}
	info, err := os.Stat(o.From)
	if err != nil {
		return "", "", fmt.Errorf("read %s: %w", o.From, plain(err))
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
	return "", "", fmt.Errorf("there is neither %s nor a libllama in %s", p.archive(), o.From)
}

// abandoned is the age at which the stage of an install that was killed is swept away.
const abandoned = 24 * time.Hour

// stage makes a folder beside the packages, in which one is put together. done removes it.
func (o *Options) stage() (dir string, done func(), err error) {
	if err := os.MkdirAll(o.Dest, 0o755); err != nil {
		return "", nil, fmt.Errorf("make folder %s: %w", o.Dest, plain(err))
	}
	old, _ := filepath.Glob(filepath.Join(o.Dest, ".install-*")) // the pattern is well-formed
	for _, dir := range old {
		if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.RemoveAll(dir) // it only takes room
		}
	}
	dir, err = os.MkdirTemp(o.Dest, ".install-")
	if err != nil {
		return "", nil, fmt.Errorf("make folder in %s: %w", o.Dest, plain(err))
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

// extract checks an archive and unpacks it into a new folder.
func (o *Options) extract(ctx context.Context, p Package, archive, into string) error {
	f, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("read %s: %w", archive, plain(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read %s: %w", archive, plain(err))
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
	return unpack(interruptible{ctx, f}, root, trusted, func(n int64) { o.Report(Unpack, p.Name, n, 0) })
}

// place moves an unpacked package to where it stays, if its libraries can be used.
func place(fresh, libraries, final string) (Candidate, error) {
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
		_ = os.Rename(former, final) // what was there comes back, if anything was
		return Candidate{}, fmt.Errorf("move to %s: %w", final, err)
	}
	return Look(filepath.Join(final, libraries), Installed)
}

// adopt copies libraries that the user built.
func (o *Options) adopt(ctx context.Context, libraries string) (Result, error) {
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
		return Result{}, fmt.Errorf("read %s: %w", libraries, plain(err))
	}
	for _, e := range entries {
		if !ours(e.Name()) {
			continue
		}
		if err := duplicate(ctx, libraries, fresh, e.Name()); err != nil {
			return Result{}, fmt.Errorf("copy %s: %w", filepath.Join(libraries, e.Name()), plain(err))
		}
	}
	c, err := place(fresh, "", filepath.Join(o.Dest, "local-"+ownOS+"-"+ownArch))
	return Result{Candidate: c}, err
}

// ours says whether a file belongs to llama.cpp: its libraries, and what says which release they are.
func ours(name string) bool {
	parts := libraryName.FindStringSubmatch(name)
	return name == buildData || parts != nil && (strings.HasPrefix(parts[1], "llama") || strings.HasPrefix(parts[1], "ggml"))
}

// duplicate copies a file from folder to folder. A link to a file of the same folder stays one, as a library has several names.
func duplicate(ctx context.Context, from, to, name string) error {
	source := filepath.Join(from, name)
	if target, err := os.Readlink(source); err == nil && filepath.Base(target) == target && ours(target) {
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

// interruptible is a reader that ends with its context.
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
