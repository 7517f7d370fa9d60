// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/trust"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/command/metrics"
	"github.com/clusterhub/clusterhub/pkg/logging"
)

// defaultNamespace is the namespace of a provider that does not run in a pod.
const defaultNamespace = "openmcp-system"

// options are those of the contract, and those of the command itself.
type options struct {
	clusterprovider.Options

	kubeconfig    string
	verbosity     string
	leaderElect   bool
	healthAddress string
	metrics       metrics.Options
	dryRun        bool
	workers       int
	anyOIDCPrefix bool
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	o.Namespace = os.Getenv("POD_NAMESPACE")
	if o.Namespace == "" {
		o.Namespace = defaultNamespace
	}
	fs.StringVar(&o.ProviderName, "provider-name", "",
		"The name of this provider, a DNS label. It is part of the names of its profiles and of its labels.")
	fs.StringVar(&o.Environment, "environment", "",
		"The name of the environment, a DNS label. It is part of the names of the provider's profiles.")
	fs.StringVarP(&o.verbosity, "verbosity", "v", "INFO", "The log level: DEBUG, INFO or ERROR.")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "",
		"The path to the kubeconfig of the hub, or to a directory with a file named kubeconfig, or with the files host, token and ca.crt. "+
			"The default is the service account of the pod.")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace,
		"The namespace of the provider's own objects on the hub. The default is the namespace of the pod.")
}

func (o *options) addRunFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.leaderElect, "leader-elect", false, "If true, leader election is enabled: one of several processes reconciles, and the others stand by.")
	fs.StringVar(&o.healthAddress, "health-probe-bind-address", "0", "The address on which /healthz and /readyz are served, such as :8081. The address 0 disables the endpoint.")
	o.metrics = metrics.Options{Address: metrics.Off, Secure: true}
	o.metrics.AddFlags(fs, "the hub")
	fs.BoolVar(&o.anyOIDCPrefix, "insecure-oidc-prefixes", false, "If true, clusters may trust OIDC providers whose usernamePrefix or "+
		"groupsPrefix is empty or does not end with one of "+trust.Separators+". A requester of such access can become any user or "+
		"group that the cluster gives rights to.")
	fs.IntVar(&o.workers, "concurrent-reconciles", 16, "The maximum number of Clusters, and of AccessRequests, that are reconciled concurrently.")
}

// complete validates the options and reads the configuration of the hub.
func (o *options) complete() error {
	var errs []error
	for _, flag := range []struct{ name, value string }{
		{"provider-name", o.ProviderName}, {"environment", o.Environment}, {"namespace", o.Namespace},
	} {
		if problems := validation.IsDNS1123Label(flag.value); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("--%s: %q: %s", flag.name, flag.value, problems[0]))
		}
	}
	if o.Namespace == v1alpha1.TokenSourceNamespace {
		errs = append(errs, fmt.Errorf("--namespace: %s has the token sources of all providers: use another namespace", o.Namespace))
	}
	if _, err := o.level(); err != nil {
		errs = append(errs, err)
	}
	if o.workers < 0 {
		errs = append(errs, fmt.Errorf("--concurrent-reconciles: must be 0 or more, got %d", o.workers))
	}
	errs = append(errs, o.metrics.Validate()...)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	hub, err := loadHub(o.kubeconfig)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	// The server shares out its capacity itself.
	hub.QPS = -1
	o.Hub = rest.AddUserAgent(hub, "cluster-provider/"+o.ProviderName)
	return nil
}

func (o *options) level() (slog.Level, error) {
	switch strings.ToUpper(o.verbosity) {
	case "DEBUG":
		return slog.LevelDebug, nil
	case "INFO":
		return slog.LevelInfo, nil
	case "ERROR":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("--verbosity: must be DEBUG, INFO or ERROR, got %q", o.verbosity)
}

func (o *options) logger() logr.Logger {
	level, _ := o.level() // complete has validated it
	return logging.Limit(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
}

// loadHub reads the configuration of the hub: a kubeconfig, a folder that has one or its parts, or that of the pod. A token in a file is reloaded.
func loadHub(path string) (*rest.Config, error) {
	if path == "" {
		return command.RESTConfig("")
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return command.RESTConfig(path)
	}
	if file := filepath.Join(path, v1alpha1.SecretKeyKubeconfig); exists(file) {
		return command.RESTConfig(file)
	}
	host, err := os.ReadFile(filepath.Join(path, v1alpha1.SecretKeyHost))
	if err != nil {
		return nil, fmt.Errorf("%s has neither a kubeconfig nor host, token and ca.crt: %w", path, err)
	}
	config := &rest.Config{
		Host: strings.TrimSpace(string(host)), BearerTokenFile: filepath.Join(path, v1alpha1.SecretKeyToken),
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(path, v1alpha1.SecretKeyCA)},
	}
	for _, file := range []string{config.BearerTokenFile, config.CAFile} {
		if !exists(file) {
			return nil, fmt.Errorf("%s has host, but not %s", path, filepath.Base(file))
		}
	}
	command.FollowToken(config)
	return config, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
