// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package mint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/command"
)

func TestParse_Rejected(t *testing.T) {
	const server, ca = `server: "https://api.example:6443"`, `certificate-authority-data: $CA`
	long := strings.Repeat("x", command.MaxToken+1)
	for _, test := range []struct{ name, cluster, user, want string }{
		{"good", goodCluster, goodUser, ""},
		{"certificate", goodCluster, `client-certificate-data: $CERT, client-key-data: $KEY`, ""},
		{"path, proxy and name", `server: "https://[::1]/k8s/clusters/c-1", proxy-url: "socks5://u:` + proxyPassword + `@p:1", tls-server-name: api.x, ` + ca, goodUser, ""},

		{"no server", ca, goodUser, ReasonNoServer},
		{"no scheme", `server: "api.example:6443", ` + ca, goodUser, ReasonNoServer},
		{"no host", `server: "https://:6443", ` + ca, goodUser, ReasonNoServer},
		{"a port that is none", `server: "https://api.example:65536", ` + ca, goodUser, ReasonNoServer},
		{"userinfo", `server: "https://admin:` + adminToken + `@api.example", ` + ca, goodUser, ReasonNoServer},
		{"query", `server: "https://api.example?token=` + adminToken + `", ` + ca, goodUser, ReasonNoServer},
		{"fragment", `server: "https://api.example#x", ` + ca, goodUser, ReasonNoServer},
		{"a name that is none", server + `, tls-server-name: "a b", ` + ca, goodUser, ReasonNoServer},
		{"long server", `server: "https://` + strings.Repeat("a", maxURL) + `", ` + ca, goodUser, ReasonTooLarge},
		{"http", `server: "http://api.example", ` + ca, goodUser, ReasonInsecure},
		{"unverified", server + `, insecure-skip-tls-verify: true`, goodUser, ReasonInsecure},
		{"unverified with a CA", server + `, insecure-skip-tls-verify: true, ` + ca, goodUser, ReasonInsecure},
		{"no CA", server, goodUser, ReasonNoCA},
		{"an empty CA", server + `, certificate-authority-data: ""`, goodUser, ReasonNoCA},
		{"a CA of spaces", server + `, certificate-authority-data: ICAg`, goodUser, ReasonNoCA},
		{"a key for a CA", server + `, certificate-authority-data: $KEY`, goodUser, ReasonNoCA},
		{"a CA that is none", server + `, certificate-authority-data: aHVudGVyMg==`, goodUser, ReasonNoCA},
		{"a CA in a file", server + `, certificate-authority: /etc/ca.crt`, goodUser, ReasonFilePath},
		{"a CA in a file, too", goodCluster + `, certificate-authority: /etc/ca.crt`, goodUser, ReasonFilePath},
		{"a certificate in a file", goodCluster, goodUser + `, client-certificate: /c`, ReasonFilePath},
		{"a key in a file", goodCluster, goodUser + `, client-key: /k`, ReasonFilePath},
		{"a token in a file", goodCluster, goodUser + `, tokenFile: /t`, ReasonFilePath},
		{"exec", goodCluster, goodUser + `, exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}`, ReasonExecPlugin},
		{"auth-provider", goodCluster, goodUser + `, auth-provider: {name: gcp}`, ReasonExecPlugin},
		{"as", goodCluster, goodUser + `, as: admin`, ReasonImpersonation},
		{"as-groups", goodCluster, goodUser + `, as-groups: ["system:masters"]`, ReasonImpersonation},
		{"as-uid", goodCluster, goodUser + `, as-uid: u`, ReasonImpersonation},
		{"as-user-extra", goodCluster, goodUser + `, as-user-extra: {a: [b]}`, ReasonImpersonation},
		{"no credentials", goodCluster, ``, ReasonNoCredentials},
		{"a password", goodCluster, `username: admin, password: ` + adminToken, ReasonNoCredentials},
		{"a token with a line break", goodCluster, `token: "` + adminToken + `\n"`, ReasonNoCredentials},
		{"a long token", goodCluster, `token: ` + long, ReasonTooLarge},
		{"no key", goodCluster, goodUser + `, client-certificate-data: $CERT`, ReasonNoCredentials},
		{"no certificate", goodCluster, goodUser + `, client-key-data: $KEY`, ReasonNoCredentials},
		{"two the same", goodCluster, `client-certificate-data: $KEY, client-key-data: $KEY`, ReasonNoCredentials},
		{"a proxy of another kind", goodCluster + `, proxy-url: "ftp://u:` + proxyPassword + `@p"`, goodUser, ReasonInvalidProxy},
		{"a proxy without a host", goodCluster + `, proxy-url: "http://u:` + proxyPassword + `@:1"`, goodUser, ReasonInvalidProxy},
		{"a proxy's port that is none", goodCluster + `, proxy-url: "http://u:` + proxyPassword + `@p:99999"`, goodUser, ReasonInvalidProxy},
		{"a proxy that is no URL", goodCluster + `, proxy-url: "http://u:` + proxyPassword + `@p:z"`, goodUser, ReasonInvalidProxy},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := Parse(kubeconfig(test.cluster, test.user))
			if got := reasonOf(err); got != test.want || (s == nil) == (err == nil) {
				t.Errorf("got %q (%v), want %q", got, err, test.want)
			}
			noSecrets(t, fmt.Sprint(err))
		})
	}
}

func TestParse_InvalidKubeconfig(t *testing.T) {
	good := kubeconfig(goodCluster, goodUser)
	// 11 levels of ten aliases each.
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i <= 10; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":                  {nil, ReasonMissing},
		"spaces":                   {[]byte(" \n\t"), ReasonMissing},
		"huge":                     {bytes.Repeat([]byte("#\n"), MaxSize), ReasonTooLarge},
		"text":                     {[]byte(adminToken), ReasonUnreadable},
		"half":                     {[]byte("users: [{user: {token: " + adminToken), ReasonUnreadable},
		"a list":                   {[]byte("[]"), ReasonUnreadable},
		"another kind":             {[]byte("apiVersion: v1\nkind: Secret"), ReasonUnreadable},
		"aliases of aliases":       {[]byte(bomb), ReasonUnreadable},
		"deep":                     {[]byte(strings.Repeat("[", MaxSize/2)), ReasonUnreadable},
		"no current context":       {bytes.Replace(good, []byte("current-context: c"), nil, 1), ReasonNoContext},
		"a context that is not":    {bytes.Replace(good, []byte("current-context: c"), []byte("current-context: "+adminToken), 1), ReasonNoContext},
		"a user that is not":       {bytes.Replace(good, []byte("user: u}"), []byte("user: v}"), 1), ReasonNoContext},
		"a cluster that is not":    {bytes.Replace(good, []byte("cluster: c,"), []byte("cluster: d,"), 1), ReasonNoContext},
		"a context without fields": {[]byte("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c}]}"), ReasonNoContext},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(test.data)
			if got := reasonOf(err); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			noSecrets(t, fmt.Sprint(err))
		})
	}
}

// TestSource_HashChanges with each relevant field, and with no other.
func TestSource_HashChanges(t *testing.T) {
	const ca = `certificate-authority-data: $CA`
	hashes := map[string]string{}
	for _, config := range [][2]string{
		{goodCluster, goodUser},
		{`server: "https://api.example:6444", ` + ca, goodUser},
		{goodCluster + `, tls-server-name: x`, goodUser},
		{goodCluster + `, proxy-url: "http://p:1"`, goodUser},
		{goodCluster + `, proxy-url: "http://u:` + proxyPassword + `@p:1"`, goodUser},
		{goodCluster, goodUser + "x"},
		{goodCluster, goodUser + `, client-certificate-data: $CERT, client-key-data: $KEY`},
		{`server: "https://api.example:6443", certificate-authority-data: $TWICE`, goodUser},
	} {
		s := source(t, config[0], config[1])
		if other, found := hashes[s.Hash()]; found {
			t.Errorf("%v has the hash of %s", config, other)
		}
		hashes[s.Hash()] = config[0] + config[1]
	}
	one := source(t, goodCluster, goodUser)
	other, err := Parse(append(kubeconfig(goodCluster, goodUser), "preferences: {colors: true}\n"...))
	if err != nil || one.Hash() != other.Hash() {
		t.Error("what does not matter changes the hash", err)
	}
}

// TestSource_PrintsNoSecret in any format.
func TestSource_PrintsNoSecret(t *testing.T) {
	s := source(t, goodCluster+`, proxy-url: "http://u:`+proxyPassword+`@p:1"`, goodUser+`, client-certificate-data: $CERT, client-key-data: $KEY`)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{s, struct{ S *Source }{s}, []*Source{s}, map[string]any{"s": s}} {
			noSecrets(t, fmt.Sprintf(format, value))
		}
	}
	data, err := json.Marshal([]any{s})
	if err != nil {
		t.Error(err)
	}
	noSecrets(t, string(data)+fmt.Sprint(s.MarshalLog()))
	const text = "no such token: " + adminToken + ", no such proxy: " + proxyPassword
	noSecrets(t, s.Redact(text))
}

// TestMinted_ClientReachesServer: with the token beside it, a client reaches the server as the source does, but as a different user.
func TestMinted_ClientReachesServer(t *testing.T) {
	s := source(t, goodCluster+`, proxy-url: "http://u:`+proxyPassword+`@p:1", tls-server-name: other.example`,
		goodUser+`, client-certificate-data: $CERT, client-key-data: $KEY`)
	minted, err := s.Minted()
	if err != nil {
		t.Fatal(err)
	}
	if _, key := pair(); bytes.Contains(minted, []byte(adminToken)) || bytes.Contains(minted, key) || bytes.Contains(minted, []byte("client-")) {
		t.Error("the admin's credentials are in it")
	}
	again := source(t, goodCluster+`, proxy-url: "http://u:`+proxyPassword+`@p:1", tls-server-name: other.example`, goodUser)
	if !bytes.Equal(minted, again.minted) {
		t.Error("it is another one each time")
	}
	dir := t.TempDir()
	for name, data := range map[string]string{KubeconfigKey: string(minted), TokenKey: grantedToken} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, KubeconfigKey))
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := config.Proxy(nil)
	if err != nil || proxy.String() != "http://u:"+proxyPassword+"@p:1" {
		t.Error("the proxy is", proxy, err)
	}
	want := rest.TLSClientConfig{ServerName: "other.example", CAData: s.CA()}
	if config.Host != s.Server() || config.BearerTokenFile != filepath.Join(dir, TokenKey) ||
		fmt.Sprint(config.TLSClientConfig) != fmt.Sprint(want) || config.CertData != nil || config.Insecure {
		t.Errorf("a client reads %v", config)
	}
}

// FuzzParse: an accepted kubeconfig verifies the server, reads no file and runs nothing; and no error contains the token.
func FuzzParse(f *testing.F) {
	for _, cluster := range []string{goodCluster, `server: "http://x"`, goodCluster + `, insecure-skip-tls-verify: true`,
		goodCluster + `, proxy-url: "socks5://u:` + proxyPassword + `@p", tls-server-name: y`, `server: "https://x:y@z", certificate-authority: /ca`} {
		for _, user := range []string{goodUser, `client-certificate-data: $CERT, client-key-data: $KEY`, `tokenFile: /t`, `as: x, token: ` + adminToken,
			`exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}`} {
			f.Add(kubeconfig(cluster, user))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			if reasonOf(err) == err.Error() || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q is not a line with a reason", err)
			}
			noSecrets(t, err.Error())
			return
		}
		loaded, err := clientcmd.Load(s.minted)
		if err != nil {
			t.Fatal(err)
		}
		cluster, user := loaded.Clusters[mintedCluster], loaded.AuthInfos[mintedUser]
		tls := s.TLSConfig()
		if !strings.HasPrefix(strings.ToLower(s.Server()), "https://") || tls.InsecureSkipVerify || tls.RootCAs == nil || cluster.InsecureSkipTLSVerify ||
			cluster.CertificateAuthority != "" || len(cluster.CertificateAuthorityData) == 0 || cluster.Server != s.Server() ||
			user.Token != "" || user.TokenFile != TokenKey || user.Exec != nil || len(user.ClientKeyData) > 0 {
			t.Errorf("%q is taken, and gives %+v", data, cluster)
		}
		noSecrets(t, fmt.Sprintf("%+v", s))
	})
}
