// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/pflag"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
)

// wayToHub is how a cluster that joins connects to the hub and authenticates.
type wayToHub struct {
	token, server  string
	caFile, caData string
	proxyURL       string
	proxyCAFile    string

	ca []byte
}

func (w *wayToHub) addTo(fs *pflag.FlagSet) {
	fs.StringVar(&w.token, "hub-token", "", "Bootstrap token of the hub, from kubectl hub get token.")
	fs.StringVar(&w.server, "hub-apiserver", "", "https URL of the hub's API server.")
	fs.StringVar(&w.caFile, "ca-file", "", "PEM file with the certificate authority of the hub.")
	fs.StringVar(&w.caData, "ca-data", "",
		"The same certificate, base64 encoded, as in a kubeconfig. Without --ca-file and --ca-data, the authorities that this machine trusts are used.")
	fs.StringVar(&w.proxyURL, "proxy-url", "", "URL of the proxy through which the cluster reaches the hub.")
	fs.StringVar(&w.proxyCAFile, "proxy-ca-file", "", "PEM file with the certificate authority of the proxy. The agent also trusts it for the hub, as it does the "+
		"authority of --ca-file or --ca-data, one of which must also be set.")
}

func (w *wayToHub) validate() error {
	const how = "kubectl hub get token, on the hub, prints one"
	w.token = strings.TrimSpace(w.token)
	switch {
	case w.token == "":
		return errors.New("--hub-token must be set: " + how)
	case strings.ContainsFunc(w.token, unicode.IsSpace):
		return errors.New("--hub-token must not have white space: " + how)
	case w.server == "":
		return errors.New("--hub-apiserver must be set: the https URL of the hub's API server")
	}
	if err := kit.CheckServer(w.server); err != nil {
		return err
	}
	if err := command.CheckProxyURL(w.proxyURL); err != nil {
		return fmt.Errorf("--proxy-url %w, such as http://egress.example.com:3128", err)
	}
	if err := w.readCA(); err != nil {
		return err
	}
	return w.addProxyCA()
}

// addProxyCA adds the certificate authority of the proxy to the one of the hub: a kubeconfig has one list for both. Without an authority of the hub,
// it would replace those that the machine trusts.
func (w *wayToHub) addProxyCA() error {
	switch {
	case w.proxyCAFile == "":
		return nil
	case w.proxyURL == "":
		return errors.New("--proxy-ca-file is for --proxy-url: set both or neither")
	case len(w.ca) == 0:
		return errors.New("--ca-file or --ca-data must be set with --proxy-ca-file: otherwise the authority of the proxy would be the only one that the agent trusts for the hub")
	}
	data, err := os.ReadFile(w.proxyCAFile)
	if err != nil {
		return fmt.Errorf("--proxy-ca-file: %w", err)
	}
	if _, err := cert.ParseCertsPEM(data); err != nil {
		return errors.New("--proxy-ca-file has no PEM certificate")
	}
	w.ca = slices.Concat(bytes.TrimSpace(w.ca), []byte("\n"), data)
	return nil
}

func (w *wayToHub) readCA() (err error) {
	flag := "--ca-file"
	switch {
	case w.caFile != "" && w.caData != "":
		return errors.New("--ca-file and --ca-data cannot be used together: set only one of them")
	case w.caFile != "":
		w.ca, err = os.ReadFile(w.caFile)
		if err != nil {
			return fmt.Errorf("--ca-file: %w", err)
		}
	case w.caData != "":
		flag = "--ca-data"
		w.ca, err = base64.StdEncoding.DecodeString(w.caData)
		if err != nil {
			return errors.New("--ca-data is not base64: copy the whole value")
		}
	default:
		return nil
	}
	if _, err := cert.ParseCertsPEM(w.ca); err != nil {
		return fmt.Errorf("%s has no PEM certificate", flag)
	}
	return nil
}

// config returns the bootstrap kubeconfig.
func (w *wayToHub) config() clientcmdapi.Config {
	const name = "hub"
	return clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: w.server, CertificateAuthorityData: w.ca, ProxyURL: w.proxyURL}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: w.token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
}

func (w *wayToHub) kubeconfig() ([]byte, error) { return clientcmd.Write(w.config()) }

// try uses the bootstrap kubeconfig like the agent. It changes nothing on the hub. known reports whether the hub has a cluster of that name.
func (w *wayToHub) try(ctx context.Context, cluster, auth string) (known bool, err error) {
	config, err := clientcmd.NewDefaultClientConfig(w.config(), nil).ClientConfig()
	if err != nil {
		return false, fmt.Errorf("--hub-apiserver: %w", err)
	}
	config.Timeout = kit.RequestTimeout
	h, err := kit.NewHub(rest.AddUserAgent(config, "kubectl-hub"))
	if err != nil {
		return false, err
	}
	if err := h.Check(); err != nil {
		return false, kit.ExplainUnreachable(w.server, err, w.next(err))
	}
	made := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	_, err = h.Clusters.ClusterV1().ManagedClusters().Create(ctx, made, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsAlreadyExists(err):
		known = true
	case err != nil:
		return false, fmt.Errorf("the token may not make managed cluster %s on the hub: %w", cluster, err)
	}
	if auth != kit.AuthCSR {
		return known, nil
	}
	return known, checkCertificateRights(ctx, h)
}

func checkCertificateRights(ctx context.Context, h *kit.HubClient) error {
	for _, verb := range []string{"create", "get"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}}}
		answer, err := h.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("checking on the hub what the token may do: %w", err)
		}
		if !answer.Status.Allowed {
			return fmt.Errorf("the token may not %s certificatesigningrequests on the hub: run kubectl hub init there, which grants "+
				"bootstrap tokens the rights that they need", verb)
		}
	}
	return nil
}

// next returns what to do after an error of the hub.
func (w *wayToHub) next(err error) string {
	switch {
	case apierrors.IsUnauthorized(err):
		return "get a new --hub-token by kubectl hub get token, on the hub"
	case w.ca == nil:
		return "check --hub-apiserver, and pass the --ca-data or --ca-file of the hub (kubectl hub get token, on the hub, prints it)"
	}
	return "check --hub-apiserver, --ca-data and --ca-file (kubectl hub get token, on the hub, prints them)"
}
