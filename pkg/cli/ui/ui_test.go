// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"bytes"
	"context"
	"html"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/cli/ui"
	"github.com/clusterhub/clusterhub/test/await"
)

// TestUI_BrowserArgumentsHaveNoSecret: all users of a machine can read the arguments of processes, so the browser gets a file that
// only the user can read.
func TestUI_BrowserArgumentsHaveNoSecret(t *testing.T) {
	dir := t.TempDir()
	opened := filepath.Join(dir, "opened")
	script := "#!/bin/sh\nset -eu\n{ echo \"$#\"; echo \"$1\"; ls -ln \"$1\"; ls -lnd \"$(dirname \"$1\")\"; cat \"$1\"; } > " + opened + ".new\nmv " + opened + ".new " + opened + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":1")
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": clitest.NewServer(t)})

	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	type end struct {
		stdout, stderr string
		err            error
	}
	ended := make(chan end, 1)
	go func() {
		stdout, stderr, err := clitest.RunIn(ctx, t, config, "ui")
		ended <- end{stdout, stderr, err}
	}()
	var said []byte
	for until := time.Now().Add(await.Limit); len(said) == 0; time.Sleep(5 * time.Millisecond) {
		select {
		case e := <-ended:
			t.Fatalf("it has ended: %+v", e)
		default:
		}
		if time.Now().After(until) {
			t.Fatal("no browser was opened")
		}
		said, _ = os.ReadFile(opened)
	}
	lines := strings.SplitN(string(said), "\n", 5)
	link := html.UnescapeString(regexp.MustCompile(`href="([^"]+)"`).FindStringSubmatch(lines[4])[1])
	page, token, _ := strings.Cut(link, "/#token=")
	if lines[0] != "1" || strings.Contains(lines[1], token) || !strings.HasPrefix(lines[2], "-rw------- ") || !strings.HasPrefix(lines[3], "drwx------ ") ||
		!strings.HasPrefix(page, "http://127.0.0.1:") || len(token) < 40 || !strings.Contains(lines[4], `content="0; url=`+html.EscapeString(link)) {
		t.Errorf("the browser is opened by %s", said)
	}

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, page+"/session", strings.NewReader(`{"token":"`+token+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Origin", page)
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the link is no good: %v %v", response, err)
	}
	_ = response.Body.Close()
	for until := time.Now().Add(await.Limit); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(lines[1]); os.IsNotExist(err) {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the file stays after the secret in it was used")
		}
	}
	interrupt()
	e := <-ended
	if e.err != nil || e.stdout != link+"\n" || strings.Contains(e.stderr, token) {
		t.Errorf("it ends with %+v", e)
	}
	clitest.Says(t, e.stderr, "until Ctrl-C", "one browser and for 60 seconds", "Press Enter for another link")
	if _, err := http.Get(page); err == nil {
		t.Error("the page is served after the end")
	}
}

func TestUI_RejectsRemoteAddresses(t *testing.T) {
	config := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": clitest.NewServer(t)})
	for args, want := range map[string]string{
		"--address=0.0.0.0":   "must be 127.0.0.1 or ::1",
		"--address=192.0.2.1": "must be 127.0.0.1 or ::1",
		"--address=localhost": "must be 127.0.0.1 or ::1",
		"--address=":          "must be 127.0.0.1 or ::1",
		"--port=65536":        "must be 0 to 65535",
		"--port=-1":           "must be 0 to 65535",
	} {
		if _, _, err := clitest.Run(t, config, "ui", "--no-browser", args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// keyboard is a user who presses Enter, and then Ctrl-C.
type keyboard struct {
	presses   int
	interrupt func()
}

func (k *keyboard) Read(p []byte) (int, error) {
	k.presses--
	if k.presses < 0 {
		k.interrupt()
		return 0, io.EOF
	}
	return copy(p, "\n"), nil
}

func TestUI_EnterPrintsNewLink(t *testing.T) {
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	ctx, interrupt := context.WithTimeout(t.Context(), await.Limit)
	defer interrupt()
	var out, errOut bytes.Buffer
	opts := &kit.Options{IOStreams: genericiooptions.IOStreams{In: &keyboard{presses: 2, interrupt: interrupt}, Out: &out, ErrOut: &errOut}}
	opts.ConfigFlags = genericclioptions.NewConfigFlags(true)
	opts.ConfigFlags = opts.WithContext(clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": clitest.NewServer(t)}), "hub").ConfigFlags
	cmd := ui.NewCommand(opts)
	cmd.SetArgs([]string{})
	err := cmd.ExecuteContext(ctx)
	links := strings.Fields(out.String())
	if err != nil || len(links) != 3 || links[0] == links[1] || links[1] == links[2] {
		t.Errorf("%v: %s", err, out.String())
	}
	clitest.Says(t, errOut.String(), "Warning: no browser was opened: there is no screen: open the link", "Press Enter for another link")
}

func TestUI_PrintsEquivalentCommand(t *testing.T) {
	file := clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": clitest.NewServer(t)})
	opts := &kit.Options{ConfigFlags: genericclioptions.NewConfigFlags(true)}
	opts.ConfigFlags = opts.WithContext(file, "hub").ConfigFlags
	user, groups := "o'hara", []string{"team a"}
	opts.ConfigFlags.Impersonate, opts.ConfigFlags.ImpersonateGroup = &user, &groups
	config, err := opts.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.Host = "https://user:password@hub.example/a?b"
	about, err := ui.AboutOf(opts, config)
	want := "kubectl --kubeconfig " + file + ` --context hub --as 'o'\''hara' --as-group 'team a'`
	if err != nil || about.Kubectl != want || about.Server != "https://hub.example/a" || about.Context != "hub" || about.Impersonating != user {
		t.Errorf("got %+v: %v, want %s", about, err, want)
	}
}
