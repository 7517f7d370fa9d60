// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	sources "github.com/clusterhub/clusterhub/pkg/remote/mint"
)

const (
	// maxFile is the largest size in bytes of the file that the context is read from.
	maxFile   = 16 << 20
	howToMake = "create a ServiceAccount with the rights of cluster-admin there, and a kubeconfig with its token, " +
		"as docs/detached.md says under \"A kubeconfig for hub-operator\""
)

// Source is the kubeconfig of an admin for hub-operator to connect to a cluster.
type Source struct {
	// Flag is the flag with the file, and What describes the cluster.
	Flag, What string

	// File is the value of the flag. Context is a context of the file, or "" for its current one.
	File, Context string

	// Data is stored in a secret: one context, without references to this machine. Parsed is the same as hub-operator reads it.
	Data   []byte
	Parsed *sources.Source
	// Config is the configuration that Data has.
	Config *rest.Config
	// ClusterUID is the UID of the cluster's namespace kube-system, which identifies the cluster.
	ClusterUID types.UID
}

// Read reads the file, and extracts what a program on another machine can use.
func (s *Source) Read() error {
	if s.File == "" {
		return fmt.Errorf("--%s must be set: the file with the kubeconfig of an admin of %s", s.Flag, s.What)
	}
	info, err := os.Stat(s.File)
	if err != nil {
		return fmt.Errorf("--%s: %w", s.Flag, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return fmt.Errorf("--%s: %s must be a file of at most %d MiB: kubectl config view --minify --flatten prints the part for one cluster",
			s.Flag, s.File, maxFile>>20)
	}
	config, err := clientcmd.LoadFromFile(s.File)
	if err != nil {
		// The error omits the content, which may be a secret.
		return fmt.Errorf("--%s: %s is not a kubeconfig", s.Flag, s.File)
	}
	if s.Context != "" {
		config.CurrentContext = s.Context
	}
	if _, ok := config.Contexts[config.CurrentContext]; !ok {
		return fmt.Errorf("--%s: %s has no context %q: choose one by --%s-context", s.Flag, s.File, config.CurrentContext, s.short())
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return fmt.Errorf("--%s: %s: %w", s.Flag, s.File, err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return fmt.Errorf("--%s: %s: %w", s.Flag, s.File, err)
	}
	for _, user := range config.AuthInfos {
		if err := s.checkUser(user); err != nil {
			return err
		}
	}
	s.Data, err = clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("--%s: %w", s.Flag, err)
	}
	// Report now what hub-operator would reject later.
	s.Parsed, err = sources.Parse(s.Data)
	if err != nil {
		return fmt.Errorf("--%s: %s: %w", s.Flag, s.File, err)
	}
	s.Config, err = clientcmd.RESTConfigFromKubeConfig(s.Data)
	if err != nil {
		return fmt.Errorf("--%s: %s: %w", s.Flag, s.File, err)
	}
	return nil
}

func (s *Source) short() string {
	if s.Flag == HubKubeconfigFlag {
		return "hub"
	}
	return "managed"
}

// checkUser rejects credentials that a program on this machine creates, since hub-operator runs on another machine.
func (s *Source) checkUser(user *clientcmdapi.AuthInfo) error {
	switch {
	case user.Exec != nil:
		return fmt.Errorf("--%s: %s gets its credentials by the program %q, which hub-operator does not run: %s", s.Flag, s.File, user.Exec.Command, howToMake)
	case user.AuthProvider != nil:
		return fmt.Errorf("--%s: %s gets its credentials by the auth provider %q, which hub-operator does not have: %s", s.Flag, s.File, user.AuthProvider.Name, howToMake)
	case user.TokenFile != "":
		return fmt.Errorf("--%s: %s reads its token from the file %s, which hub-operator does not have: %s", s.Flag, s.File, user.TokenFile, howToMake)
	}
	return nil
}

// adminRights are permissions that every admin has who can grant permissions in a cluster. hub-operator reports in a condition which permissions it
// lacks.
var adminRights = []authorizationv1.ResourceAttributes{
	{Verb: "create", Resource: "namespaces"},
	{Verb: "create", Resource: "serviceaccounts"},
	{Verb: "create", Resource: "serviceaccounts", Subresource: "token"},
	{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
	{Verb: "create", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
}

// Try reads the identity of the cluster and the permissions of the kubeconfig. It changes nothing.
func (s *Source) Try(ctx context.Context, opts *kit.Options) error {
	config := rest.AddUserAgent(rest.CopyConfig(s.Config), "kubectl-hub")
	config.Timeout, config.QPS, config.WarningHandler = kit.RequestTimeout, -1, kit.WarningHandler{Options: opts}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("--%s: %w", s.Flag, err)
	}
	explain := func(err error) error { // the error may quote the request
		return errors.New(s.Parsed.Redact(kit.ExplainUnreachable(s.What+" "+config.Host, err, "check --"+s.Flag).Error()))
	}
	system, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("getting the identity of %s: %w", s.What, explain(err))
	}
	s.ClusterUID = system.UID
	missing, err := kit.MissingRight(ctx, client, adminRights)
	switch {
	case err != nil:
		return fmt.Errorf("checking in %s what --%s may do: %w", s.What, s.Flag, explain(err))
	case missing != "":
		return fmt.Errorf("the user of --%s may not %s on %s %s: it must be the kubeconfig of an admin", s.Flag, missing, s.What, config.Host)
	}
	if kit.IsLoopback(config.Host) {
		opts.Warn("--%s has the server %s, which is this machine: pods of the management cluster need another address of %s", s.Flag, config.Host, s.What)
	}
	if until := s.expires(); !until.IsZero() {
		opts.Warn("the credentials in --%s expire at %s: run this command again with new ones before, or %s", s.Flag, until.UTC().Format(time.RFC3339), howToMake)
	}
	return nil
}

// expires returns when the credentials expire, or the zero time if that is not known.
func (s *Source) expires() (until time.Time) {
	for _, certificate := range s.Parsed.TLSConfig().Certificates {
		if certificate.Leaf != nil {
			until = certificate.Leaf.NotAfter
		}
	}
	parts := strings.Split(s.Parsed.BearerToken(), ".")
	if len(parts) != 3 {
		return until
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil && json.Unmarshal(payload, &claims) == nil && claims.Expires > 0 {
		return time.Unix(claims.Expires, 0)
	}
	return until
}
