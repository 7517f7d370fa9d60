// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui has the command ui, which serves the page of a hub to a browser of this machine.
package ui

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/ui"
	"github.com/clusterhub/clusterhub/pkg/ui/assets"
)

// page is the page that kubectl hub ui serves.
type page struct {
	*kit.Options
	address   string
	port      int
	noBrowser bool
	files     fs.FS
}

// NewCommand returns the command ui.
func NewCommand(opts *kit.Options) *cobra.Command {
	p := &page{Options: opts, files: assets.FS}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the hub in a browser",
		Long: "ui serves a page on this machine only that shows the hub with your rights, and opens a browser. The page only reads. " +
			"It is served until Ctrl-C. The link is valid for one browser and for " + linkTTL + "; press Enter for another.",
		Example: kit.Example(`
kubectl hub ui --context hub
# As another user, without opening a browser
kubectl hub ui --as dana --no-browser
# From another machine: ssh -L 8001:127.0.0.1:8001 HOST, and there
kubectl hub ui --port 8001 --no-browser`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.serve(cmd.Context()) },
	}
	cmd.Flags().StringVar(&p.address, "address", "127.0.0.1", "Loopback address to serve the page on.")
	cmd.Flags().IntVar(&p.port, "port", 0, "Port to serve the page on. Defaults to a free port.")
	cmd.Flags().BoolVar(&p.noBrowser, "no-browser", false, "Only print the link.")
	return cmd
}

// linkTTL is ui.TokenTTL in words.
var linkTTL = fmt.Sprintf("%.0f seconds", ui.TokenTTL.Seconds())

func (p *page) serve(ctx context.Context) error {
	ip := net.ParseIP(p.address)
	if ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("--address must be 127.0.0.1 or ::1, not %q: the page is not encrypted", p.address)
	}
	if p.port < 0 || p.port > 65535 {
		return fmt.Errorf("--port must be 0 to 65535, not %d", p.port)
	}
	h, err := p.Hub()
	if err != nil {
		return err
	}
	about, err := p.about(h.Config)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(ip.String(), strconv.Itoa(p.port)))
	if err != nil {
		return fmt.Errorf("serving the page: %w: choose another --port", err)
	}
	defer func() { _ = listener.Close() }()
	server, err := ui.New(ui.Options{Hub: h.Config, Files: p.files, About: about, Where: p.answerFlags()}, listener.Addr())
	if err != nil {
		return err
	}
	ctx, end := untilParentEnds(ctx)
	defer end()
	p.show(ctx, server, about)
	if p.promptForLink(h.Config) {
		go p.answerEnter(ctx, server)
	}
	return server.Serve(ctx, listener)
}

// show prints the link, and opens it in a browser.
func (p *page) show(ctx context.Context, server *ui.Local, about ui.About) {
	_, _ = fmt.Fprintf(p.ErrOut, "Serving the page of the hub %s until Ctrl-C. The link is valid for one browser and for %s:\n",
		command.Printable(about.Server), linkTTL)
	link := server.Link()
	_, _ = fmt.Fprintln(p.Out, link)
	if p.noBrowser {
		return
	}
	if err := openBrowser(ctx, link, server.Used()); err != nil {
		p.Warn("no browser was opened: %v: open the link", err)
	}
}

// promptForLink prints how to get another link, and reports whether Enter does that. A credential plugin may need the keyboard.
func (p *page) promptForLink(config *rest.Config) bool {
	if e := config.ExecProvider; e != nil && e.InteractiveMode != clientcmdapi.NeverExecInteractiveMode {
		_, _ = fmt.Fprintln(p.ErrOut, "For another link, run this command again.")
		return false
	}
	ignoreTerminalInput()
	_, _ = fmt.Fprintln(p.ErrOut, "Press Enter for another link.")
	return true
}

// answerEnter prints another link for each line of input.
func (p *page) answerEnter(ctx context.Context, server *ui.Local) {
	lines := bufio.NewReader(p.In)
	for {
		_, more, err := lines.ReadLine() // a long line counts once
		if err != nil || ctx.Err() != nil {
			return
		}
		if !more {
			_, _ = fmt.Fprintln(p.Out, server.Link())
		}
	}
}

// answerFlags returns the flags of the commands that the page shows. They are for the user of the page, or for the user of --as.
func (p *page) answerFlags() []string {
	flags := p.ContextFlags()
	if as := *p.ConfigFlags.Impersonate; as != "" {
		flags = append(flags, "--as="+as)
	}
	return flags
}

// about describes the hub and the user.
func (p *page) about(config *rest.Config) (ui.About, error) {
	raw, err := p.ConfigFlags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ui.About{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	a := ui.About{Context: cmp.Or(*p.ConfigFlags.Context, raw.CurrentContext), Impersonating: config.Impersonate.UserName, Server: config.Host}
	if at, err := url.Parse(config.Host); err == nil {
		at.User, at.RawQuery, at.Fragment = nil, "", ""
		a.Server = at.String()
	}
	words := []string{"kubectl"}
	if file := *p.ConfigFlags.KubeConfig; file != "" {
		if absolute, err := filepath.Abs(file); err == nil {
			file = absolute
		}
		words = append(words, "--kubeconfig", file)
	}
	if a.Context != "" {
		words = append(words, "--context", a.Context)
	}
	if a.Impersonating != "" {
		words = append(words, "--as", a.Impersonating)
	}
	for _, group := range config.Impersonate.Groups {
		words = append(words, "--as-group", group)
	}
	for i, word := range words {
		words[i] = kit.Quote(word)
	}
	a.Kubectl = strings.Join(words, " ")
	return a, nil
}
