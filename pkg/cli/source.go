// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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

	sources "github.com/clusterhub/clusterhub/pkg/operator/kubeconfig"
)

const (
	// maxFile is the largest size in bytes of the file that the context is read from.
	maxFile   = 16 << 20
	howToMake = "create a ServiceAccount with the rights of cluster-admin there, and a kubeconfig with its token, " +
		"as docs/detached.md says under \"A kubeconfig for hub-operator\""
)

// source is the kubeconfig of an admin for hub-operator to connect to a cluster.
type source struct {
	// flag is the flag with the file, and what describes the cluster.
	flag, what string

	file, context string

	// data is stored in a secret: one context, without references to this machine.
	data   []byte
	parsed *sources.Source
	// config is the configuration that data has.
	config *rest.Config
	// cluster is the UID of the cluster's namespace kube-system, which identifies the cluster.
	cluster types.UID
}

// read reads the file, and extracts what a program on another machine can use.
func (s *source) read() error {
	if s.file == "" {
		return fmt.Errorf("--%s must be set: the file with the kubeconfig of an admin of %s", s.flag, s.what)
	}
	info, err := os.Stat(s.file)
	if err != nil {
		return fmt.Errorf("--%s: %w", s.flag, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return fmt.Errorf("--%s: %s must be a file of at most %d MiB: kubectl config view --minify --flatten prints the part for one cluster",
			s.flag, s.file, maxFile>>20)
	}
	config, err := clientcmd.LoadFromFile(s.file)
	if err != nil {
		// The error omits the content, which may be a secret.
		return fmt.Errorf("--%s: %s is not a kubeconfig", s.flag, s.file)
	}
	if s.context != "" {
		config.CurrentContext = s.context
	}
	if _, ok := config.Contexts[config.CurrentContext]; !ok {
		return fmt.Errorf("--%s: %s has no context %q: choose one by --%s-context", s.flag, s.file, config.CurrentContext, s.short())
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return fmt.Errorf("--%s: %s: %w", s.flag, s.file, err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return fmt.Errorf("--%s: %s: %w", s.flag, s.file, err)
	}
	for _, user := range config.AuthInfos {
		if err := s.checkUser(user); err != nil {
			return err
		}
	}
	s.data, err = clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("--%s: %w", s.flag, err)
	}
	// Report now what hub-operator would reject later.
	s.parsed, err = sources.Parse(s.data)
	if err != nil {
		return fmt.Errorf("--%s: %s: %w", s.flag, s.file, err)
	}
	s.config, err = clientcmd.RESTConfigFromKubeConfig(s.data)
	if err != nil {
		return fmt.Errorf("--%s: %s: %w", s.flag, s.file, err)
	}
	return nil
}

func (s *source) short() string {
	if s.flag == hubKubeconfigFlag {
		return "hub"
	}
	return "managed"
}

// checkUser rejects credentials that a program on this machine creates, since hub-operator runs on another machine.
func (s *source) checkUser(user *clientcmdapi.AuthInfo) error {
	switch {
	case user.Exec != nil:
		return fmt.Errorf("--%s: %s gets its credentials by the program %q, which hub-operator does not run: %s", s.flag, s.file, user.Exec.Command, howToMake)
	case user.AuthProvider != nil:
		return fmt.Errorf("--%s: %s gets its credentials by the auth provider %q, which hub-operator does not have: %s", s.flag, s.file, user.AuthProvider.Name, howToMake)
	case user.TokenFile != "":
		return fmt.Errorf("--%s: %s reads its token from the file %s, which hub-operator does not have: %s", s.flag, s.file, user.TokenFile, howToMake)
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

// try reads the identity of the cluster and the permissions of the kubeconfig. It changes nothing.
func (s *source) try(ctx context.Context, g *global) error {
	config := rest.AddUserAgent(rest.CopyConfig(s.config), "kubectl-hub")
	config.Timeout, config.QPS, config.WarningHandler = wayTimeout, -1, warner{g}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("--%s: %w", s.flag, err)
	}
	explain := func(err error) error { // the error may quote the request
		return errors.New(s.parsed.Redact(unreachable(s.what+" "+config.Host, err, "check --"+s.flag).Error()))
	}
	system, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("getting the identity of %s: %w", s.what, explain(err))
	}
	s.cluster = system.UID
	missing, err := mayNot(ctx, client, adminRights)
	switch {
	case err != nil:
		return fmt.Errorf("checking in %s what --%s may do: %w", s.what, s.flag, explain(err))
	case missing != "":
		return fmt.Errorf("the user of --%s may not %s on %s %s: it must be the kubeconfig of an admin", s.flag, missing, s.what, config.Host)
	}
	if isLoopback(config.Host) {
		g.warn("--%s has the server %s, which is this machine: pods of the management cluster need another address of %s", s.flag, config.Host, s.what)
	}
	if until := s.expires(); !until.IsZero() {
		g.warn("the credentials in --%s expire at %s: run this command again with new ones before, or %s", s.flag, until.UTC().Format(time.RFC3339), howToMake)
	}
	return nil
}

// expires returns when the credentials expire, or the zero time if that is not known.
func (s *source) expires() (until time.Time) {
	for _, certificate := range s.parsed.TLSConfig().Certificates {
		if certificate.Leaf != nil {
			until = certificate.Leaf.NotAfter
		}
	}
	parts := strings.Split(s.parsed.BearerToken(), ".")
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

// mayNot describes the first of the permissions that the user does not have. It returns "" if the user has all of them.
func mayNot(ctx context.Context, client kubernetes.Interface, rights []authorizationv1.ResourceAttributes) (string, error) {
	all := authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}
	if allowed, err := isAllowed(ctx, client, all); err != nil || allowed {
		return "", err
	}
	for _, right := range rights {
		allowed, err := isAllowed(ctx, client, right)
		if err != nil {
			return "", err
		}
		if !allowed {
			return inWords(right), nil
		}
	}
	return "", nil
}

func isAllowed(ctx context.Context, client kubernetes.Interface, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

func inWords(right authorizationv1.ResourceAttributes) string {
	words := right.Verb + " " + right.Resource + after("/", right.Subresource) + after(".", right.Group)
	return words + after(" in the namespace ", right.Namespace)
}
