// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

const (
	// loadTimeout is the maximum time for a kube-apiserver to use a new configuration. It usually needs ten seconds.
	loadTimeout = 30 * time.Second
	// issuerTimeout is the response timeout of an issuer.
	issuerTimeout = 5 * time.Second
)

func (c cluster) authenticationFile() string { return c.file("authentication.yaml") }

// TrustOIDC makes the cluster trust these issuers and no others, and returns when it does. Those that it cannot trust are skipped, and returned as
// RefusedIssuers.
//
// Names that begin with system: belong to the cluster. No issuer can assign them, whatever its prefixes are.
func (p *Provider) TrustOIDC(ctx context.Context, object *v1alpha1.Cluster, providers []v1alpha1.OIDCProviderConfig) error {
	c, err := p.clusterOf(object)
	if err != nil {
		return err
	}
	if err := p.own(ctx); err != nil {
		return err
	}
	defer p.clusters.lock(c.uid)()
	r, err := c.read()
	if err != nil {
		return err
	}
	before, err := c.trusted()
	if err != nil {
		return err
	}
	authenticators, refused := p.authenticators(ctx, providers, before)
	if err := c.writeAuthentication(r, authenticators); err != nil {
		return err
	}
	if err := p.awaitAuthentication(ctx, c, r); err != nil {
		return err
	}
	if len(refused) > 0 {
		return refused
	}
	return nil
}

// authenticators returns the authenticators for the acceptable providers: one for each issuer.
func (p *Provider) authenticators(
	ctx context.Context, providers []v1alpha1.OIDCProviderConfig, before sets.Set[string],
) (all []apiserverv1.JWTAuthenticator, refused clusterprovider.RefusedIssuers) {
	refused = clusterprovider.RefusedIssuers{}
	for _, provider := range providers {
		i := slices.IndexFunc(all, func(other apiserverv1.JWTAuthenticator) bool { return other.Issuer.URL == provider.Issuer })
		if i >= 0 {
			all[i].Issuer.Audiences = append(all[i].Issuer.Audiences, provider.ClientID)
			continue
		}
		authenticator := p.authenticator(&provider)
		if err := p.check(ctx, authenticator, before); err != nil {
			refused[provider.Issuer] = err
			continue
		}
		all = append(all, authenticator)
	}
	// The same providers result in the same file.
	for i := range all {
		slices.Sort(all[i].Issuer.Audiences)
		all[i].Issuer.Audiences = slices.Compact(all[i].Issuer.Audiences)
	}
	slices.SortFunc(all, func(a, b apiserverv1.JWTAuthenticator) int { return strings.Compare(a.Issuer.URL, b.Issuer.URL) })
	return all, refused
}

func (p *Provider) authenticator(provider *v1alpha1.OIDCProviderConfig) apiserverv1.JWTAuthenticator {
	return apiserverv1.JWTAuthenticator{
		Issuer: apiserverv1.Issuer{
			URL: provider.Issuer, CertificateAuthority: p.issuerCA,
			Audiences: []string{provider.ClientID}, AudienceMatchPolicy: apiserverv1.AudienceMatchPolicyMatchAny,
		},
		ClaimMappings: apiserverv1.ClaimMappings{
			Username: apiserverv1.PrefixedClaimOrExpression{Claim: provider.GetUsernameClaim(), Prefix: new(provider.GetUsernamePrefix())},
			Groups:   apiserverv1.PrefixedClaimOrExpression{Claim: provider.GetGroupsClaim(), Prefix: new(provider.GetGroupsPrefix())},
		},
		UserValidationRules: []apiserverv1.UserValidationRule{{
			Expression: "!user.username.startsWith('system:')",
			Message:    "an OIDC issuer cannot assign user names that begin with system:",
		}, {
			Expression: "user.groups.all(group, !group.startsWith('system:'))",
			Message:    "an OIDC issuer cannot assign groups that begin with system:",
		}},
	}
}

// check validates an authenticator. An invalid one would prevent kube-apiserver from starting, and an issuer that it cannot reach would prevent it
// from using a new configuration, so those are detected before.
func (p *Provider) check(ctx context.Context, authenticator apiserverv1.JWTAuthenticator, before sets.Set[string]) error {
	var internal apiserver.AuthenticationConfiguration
	given := apiserverv1.AuthenticationConfiguration{JWT: []apiserverv1.JWTAuthenticator{authenticator}}
	if err := scheme.Convert(&given, &internal, nil); err != nil {
		return err
	}
	compiler := authenticationcel.NewDefaultCompiler()
	errs := validation.ValidateAuthenticationConfiguration(compiler, &internal, []string{localserver.DefaultIssuer})
	if err := errs.ToAggregate(); err != nil {
		return err
	}
	if before.Has(authenticator.Issuer.URL) {
		return nil
	}
	if err := p.reach(ctx, authenticator.Issuer.URL); err != nil {
		// The request chooses the issuer, and the response of a server there must not be disclosed to the requester.
		ctrl.LoggerFrom(ctx).Info("Rejected an OIDC issuer", "issuer", authenticator.Issuer.URL, "reason", err.Error())
		if untrusted := (*tls.CertificateVerificationError)(nil); errors.As(err, &untrusted) || errors.Is(err, errOtherIssuer) {
			return errors.New("it is not trusted: see the log of the provider")
		}
		return errors.New("it is not reachable: see the log of the provider")
	}
	return nil
}

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	return s
}()

// errOtherIssuer reports a document of a different issuer.
var errOtherIssuer = errors.New("unexpected issuer")

// maxDocument is the maximum size of an OpenID configuration in bytes.
const maxDocument = 1 << 20

// openIDConfiguration has the fields that kube-apiserver reads. It rejects documents with other types in them.
type openIDConfiguration struct {
	Issuer        string   `json:"issuer"`
	Keys          string   `json:"jwks_uri"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	UserInfo      string   `json:"userinfo_endpoint"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
}

// reach sends an issuer the first request that kube-apiserver will send.
func (p *Provider) reach(ctx context.Context, issuer string) error {
	ctx, cancel := context.WithTimeout(ctx, issuerTimeout)
	defer cancel()
	url := strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	if p.issuerCA != "" {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(p.issuerCA))
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("the issuer is not reachable: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s responded with %s", url, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument))
	if err != nil {
		return fmt.Errorf("reading %s: %w", url, err)
	}
	var document openIDConfiguration
	if err := json.Unmarshal(body, &document); err != nil {
		return fmt.Errorf("%s is not an OpenID configuration: %w", url, err)
	}
	if document.Issuer != issuer {
		return fmt.Errorf("%w: %s is the configuration of %q", errOtherIssuer, url, document.Issuer)
	}
	if document.Keys == "" {
		return fmt.Errorf("%s is not an OpenID configuration: it has no jwks_uri", url)
	}
	return nil
}

// trusted returns the URLs of the issuers that the cluster trusts.
func (c cluster) trusted() (sets.Set[string], error) {
	data, err := os.ReadFile(c.authenticationFile())
	if err != nil {
		return nil, err
	}
	var config apiserverv1.AuthenticationConfiguration
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", c.authenticationFile(), err)
	}
	urls := sets.New[string]()
	for _, authenticator := range config.JWT {
		urls.Insert(authenticator.Issuer.URL)
	}
	return urls, nil
}

// writeAuthentication writes kube-apiserver's configuration, unless it is unchanged.
func (c cluster) writeAuthentication(r record, authenticators []apiserverv1.JWTAuthenticator) error {
	group := apiserverv1.SchemeGroupVersion
	if v, err := version.ParseSemantic(r.Version); err == nil && v.LessThan(version.MustParseSemantic("1.34.0")) {
		group.Version = "v1beta1"
	}
	data, err := yaml.Marshal(apiserverv1.AuthenticationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: group.String(), Kind: "AuthenticationConfiguration"}, JWT: authenticators,
	})
	if err != nil {
		return err
	}
	if before, err := os.ReadFile(c.authenticationFile()); err == nil && string(before) == string(data) {
		return nil
	}
	return localserver.WriteFile(c.authenticationFile(), data)
}

// ConditionIssuers of a Cluster is True if its kube-apiserver trusts the OIDC issuers that it should.
const ConditionIssuers = "OIDCIssuersLoaded"

const restartMessage = apiServer + " is being restarted to apply its new authentication configuration: it has not loaded the configuration, " +
	"since one of the new OIDC issuers does not respond"

// issuersLoaded returns the condition of a cluster. A new provider process knows of no restart: what has been started since has read the latest
// configuration.
func (p *Provider) issuersLoaded(c cluster) metav1.Condition {
	condition := metav1.Condition{Type: ConditionIssuers, Status: metav1.ConditionTrue, Reason: "Loaded",
		Message: apiServer + " trusts the OIDC issuers that AccessRequests specify"}
	if _, restarting := p.restarts.Load(c.uid); restarting {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Restarting", restartMessage
	}
	return condition
}

// restarted checks whether the restart of a kube-apiserver that responds again is complete.
func (p *Provider) restarted(ctx context.Context, c cluster, admin admin) error {
	before, ok := p.restarts.Load(c.uid)
	if !ok {
		return nil
	}
	now, err := os.ReadFile(c.authenticationFile()) // it may have been written again since
	if err != nil {
		return err
	}
	uses, err := admin.usesAuthentication(ctx, before.([]byte), now)
	if err == nil && !uses {
		err = errors.New("it has not loaded its new authentication configuration yet")
	}
	if err == nil {
		p.restarts.Delete(c.uid)
	}
	return err
}

// awaitAuthentication waits until kube-apiserver uses its configuration. A running kube-apiserver retains the old one for as long as an issuer of the
// new one cannot be reached, but not one that starts: so it is restarted, since an issuer that is down must not keep another one trusted. The restart
// is not waited for: Ensure does, and reports it on the Cluster until then.
func (p *Provider) awaitAuthentication(ctx context.Context, c cluster, r record) error {
	data, err := os.ReadFile(c.authenticationFile())
	if err != nil {
		return err
	}
	proc := c.process(apiServer)
	running, err := proc.Running()
	if err != nil {
		return err
	}
	started, restarting := p.restarts.Load(c.uid)
	switch {
	case !running && restarting:
		return clusterprovider.NotYet{Message: restartMessage}
	case !running:
		return nil // it will start with it
	}
	admin, err := c.admin(r)
	if err != nil {
		return err
	}
	if restarting {
		uses, err := admin.usesAuthentication(ctx, data)
		if err == nil && uses {
			return nil
		}
		// It reads the file when it starts. If the file has been written since, it has to load it once it responds.
		if err != nil || bytes.Equal(started.([]byte), data) {
			return clusterprovider.NotYet{Message: restartMessage}
		}
	}
	err = wait.PollUntilContextTimeout(ctx, time.Second, loadTimeout, true, func(ctx context.Context) (bool, error) {
		uses, err := admin.usesAuthentication(ctx, data)
		return err == nil && uses, nil
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Restarting kube-apiserver, which has not loaded its authentication configuration: a new OIDC issuer does not respond",
		"cluster", c.uid, "after", loadTimeout.String())
	p.restarts.Store(c.uid, data)
	p.notify(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if err := proc.Restart(); err != nil {
		return err
	}
	return clusterprovider.NotYet{Message: restartMessage}
}

// usesAuthentication reports whether kube-apiserver uses one of these configurations. For versions without the metric it returns true.
func (a admin) usesAuthentication(ctx context.Context, configs ...[]byte) (bool, error) {
	const metric = "apiserver_authentication_config_controller_last_config_info{"
	metrics, err := a.get(ctx, "/metrics")
	if err != nil {
		return false, err
	}
	reported := false
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, metric) {
			reported = true
			for _, config := range configs {
				if strings.Contains(line, fmt.Sprintf("sha256:%x", sha256.Sum256(config))) {
					return true, nil
				}
			}
		}
	}
	return !reported, nil
}
