// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

const (
	// tokenRequests is the number of AccessRequests for which short-lived tokens are requested.
	tokenRequests = 100
	// tokensEach is the number of tokens that each of the writers requests in a round.
	tokensEach = 10
)

// Names of the ways to short-lived tokens in the report.
const (
	tokensFront  = "accessrequests/token, through the front"
	tokensDirect = "accessrequests/token, direct"
	tokensPeer   = "peer: serviceaccounts/token of the cluster"
)

// tokenWay is a way to short-lived tokens.
type tokenWay struct {
	name    string
	clients []*kit.Client
	path    func(i int) string
	body    []byte
	// rates are the results for each number of clients.
	rates map[int]*kit.Rates
}

// MeasureTokens compares short-lived tokens with those that the cluster itself issues.
func MeasureTokens(ctx context.Context, o kit.Options) (results Tokens, err error) {
	err = withAccess(ctx, o, func(ctx context.Context, a *env) error { return a.measureTokens(ctx, &results) })
	return results, err
}

func (a *env) measureTokens(ctx context.Context, results *Tokens) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const prefix, cluster = "token-", "tokens"
	name := func(i int) string { return fmt.Sprintf("%s%06d", prefix, i) }
	a.Steps.Step("Making a Cluster and %d AccessRequests", tokenRequests)
	if err := a.createClusters(ctx, []string{cluster}); err != nil {
		return err
	}
	watch, err := a.watchRequests(ctx, prefix)
	if err != nil {
		return err
	}
	if err := a.writeAsAdmin(ctx, tokenRequests, http.MethodPost, "application/json", func(int) string { return requestsPath },
		func(i int) []byte { return requestBody(name(i), cluster) }); err != nil {
		return err
	}
	if err := watch.Await(ctx, &a.Steps, tokenRequests, factPrepared, factGranted); err != nil {
		return err
	}
	ways, err := a.tokenWays(ctx, name)
	if err != nil {
		return err
	}
	for _, clients := range []int{1, a.Options.Writers} {
		a.Steps.Step("Asking for tokens by %d clients", clients)
		if err := a.requestTokens(ctx, ways, clients); err != nil {
			return err
		}
		*results = append(*results, tokensOf(ways, clients)...)
	}
	return nil
}

func (a *env) tokenWays(ctx context.Context, name func(int) string) ([]*tokenWay, error) {
	path := func(i int) string { return requestsPath + "/" + name(i%tokenRequests) + "/token" }
	body := kit.MustJSON(map[string]any{"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "AccessToken",
		"spec": map[string]any{"expirationSeconds": 3600}})
	peer, accounts, err := a.minter(ctx)
	if err != nil {
		return nil, err
	}
	peerPath := func(i int) string {
		return "/api/v1/namespaces/" + v1alpha1.TokenMinterNamespace + "/serviceaccounts/" + accounts[i%len(accounts)] + "/token"
	}
	peerBody := kit.MustJSON(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"spec": map[string]any{"expirationSeconds": 3600}})
	ways := []*tokenWay{{name: tokensFront, path: path, body: body}, {name: tokensDirect, path: path, body: body},
		{name: tokensPeer, path: peerPath, body: peerBody}}
	for i, config := range []*rest.Config{a.Front(), a.Direct(), peer} {
		ways[i].rates = map[int]*kit.Rates{}
		ways[i].clients, err = kit.NewClients(config, kit.Connections)
		if err != nil {
			return nil, err
		}
		// The first request fills the caches of permissions.
		var answer bytes.Buffer
		if err := ways[i].clients[0].Do(ctx, http.MethodPost, ways[i].path(0), "application/json", ways[i].body, &answer); err != nil {
			return nil, err
		}
		token := struct{ Status struct{ Token string } }{}
		if err := json.Unmarshal(answer.Bytes(), &token); err != nil || token.Status.Token == "" {
			return nil, fmt.Errorf("%s: no token in the answer: %w", ways[i].name, err)
		}
	}
	return ways, nil
}

// minter returns hub-apiserver's own configuration for the cluster, and the service accounts that tokens are issued for.
func (a *env) minter(ctx context.Context) (config *rest.Config, accounts []string, err error) {
	var answer bytes.Buffer
	if err := a.admins[0].Get(ctx, "/api/v1/namespaces/"+v1alpha1.TokenSourceNamespace+"/secrets", &answer); err != nil {
		return nil, nil, err
	}
	sources := &corev1.SecretList{}
	if err := json.Unmarshal(answer.Bytes(), sources); err != nil {
		return nil, nil, err
	}
	for _, source := range sources.Items {
		accounts = append(accounts, string(source.Data[v1alpha1.TokenSourceServiceAccountNameKey]))
		config, err = clientcmd.RESTConfigFromKubeConfig(source.Data[v1alpha1.TokenSourceKubeconfigKey])
		if err != nil {
			return nil, nil, err
		}
	}
	if len(accounts) == 0 {
		return nil, nil, fmt.Errorf("no Secrets in the namespace %s", v1alpha1.TokenSourceNamespace)
	}
	return config, accounts, nil
}

// requestTokens requests tokens in all ways in turns.
func (a *env) requestTokens(ctx context.Context, ways []*tokenWay, clients int) error {
	defer a.cpuProfiles(ctx, fmt.Sprintf("tokens-%d", clients), 10*time.Second)()
	turns := slices.Clone(ways)
	for _, way := range ways {
		way.rates[clients] = &kit.Rates{}
	}
	part := make([]int, tokensEach*clients)
	for round := range a.Options.Rounds {
		for i := range part {
			part[i] = round*len(part) + i
		}
		for _, way := range turns {
			if err := a.WriteAll(ctx, way.clients, kit.Write{Method: http.MethodPost, ContentType: "application/json", Path: way.path,
				Body: func(int) []byte { return way.body }, Rates: way.rates[clients], Writers: clients}, part); err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
		}
		slices.Reverse(turns) // the order changes from round to round
		a.Steps.At(round, a.Options.Rounds)
	}
	return nil
}
