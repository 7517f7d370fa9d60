// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"github.com/clusterhub/clusterhub/test/fakeaws/jwt"
)

// Account is an AWS account. Its methods take effect immediately and need no permissions: they prepare a test and read its results.
type Account struct {
	// ID is the account's number, Region the default region of its clusters, and Partition the region's partition.
	ID, Region, Partition string

	server    *Server
	users     map[string]*user
	providers map[string]*provider
	roles     map[string]*role
	clusters  map[string]*cluster
	managed   map[string]*iampolicy.Policy // the account's own managed policies, by ARN
	roleQuota int
}

// Credentials are the credentials of a user or a session.
type Credentials struct{ AccessKeyID, SecretAccessKey, SessionToken string }

// provider is an OIDC provider of an account.
type provider struct {
	name, arn string
	keys      []crypto.PublicKey
	audiences []string
}

type user struct {
	id, name, arn string
	policies      []*iampolicy.Policy
}

// Role describes a role.
type Role struct {
	Name        string
	Path        string // "/" by default
	Description string
	Trust       string
	Policies    map[string]string
	// Attached are the ARNs of managed policies.
	Attached []string
	// Boundary is the ARN of the permissions boundary, if there is one.
	Boundary string
	Tags     map[string]string
	// MaxSessionDuration is an hour by default.
	MaxSessionDuration time.Duration

	// ARN and ID are set by the server.
	ARN, ID string
}

var accountID = regexp.MustCompile(`^[0-9]{12}$`)

// AddAccount adds an account with its home region.
func (s *Server) AddAccount(id, region string) (*Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !accountID.MatchString(id) || s.accounts[id] != nil {
		return nil, fmt.Errorf("account %q: want twelve digits that no other account has", id)
	}
	a := &Account{
		ID: id, Region: region, Partition: partitionOf(region), server: s, users: map[string]*user{},
		providers: map[string]*provider{}, roles: map[string]*role{}, clusters: map[string]*cluster{},
		managed: map[string]*iampolicy.Policy{},
	}
	s.accounts[id] = a
	return a, nil
}

func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// SetRoleQuota limits the number of roles. AWS's default is 1,000. Here the default is no limit.
func (a *Account) SetRoleQuota(n int) {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	a.roleQuota = n
}

// Root returns new credentials of the account's root user, who may do everything except assume roles.
func (a *Account) Root() Credentials {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	key, _ := a.server.newKey(identity{account: a}, 0)
	return key
}

// AddUser adds a user who may do what the identity policies allow, such as AllowAll.
func (a *Account) AddUser(name string, policies ...string) (Credentials, error) {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	u := &user{id: newID("AIDA"), name: name, arn: a.arn("iam", "", "user/"+name)}
	for _, text := range policies {
		p, err := iampolicy.Parse(text, nil)
		if err != nil {
			return Credentials{}, err
		}
		u.policies = append(u.policies, p)
	}
	a.users[name], a.server.ids[u.id] = u, true
	key, _ := a.server.newKey(identity{account: a, user: u}, 0)
	return key, nil
}

// Config returns the SDK's configuration for this account's region and these credentials, with this server as AWS, in this process. It does not
// retry. Tests that need retries set the retryer.
func (a *Account) Config(c Credentials) aws.Config {
	return aws.Config{
		Region:       a.Region,
		BaseEndpoint: aws.String(a.server.url),
		HTTPClient:   a.server.InProcess(),
		Credentials:  credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken),
		Retryer:      func() aws.Retryer { return aws.NopRetryer{} },
	}
}

// AddOIDCProvider accepts tokens of the issuer that are signed with one of the keys (RSA or ECDSA P-256) and are for one of the audiences, by default
// sts.amazonaws.com. It returns the provider's ARN. A second call replaces the keys.
func (a *Account) AddOIDCProvider(issuer string, keys []crypto.PublicKey, audiences ...string) string {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	if audiences == nil {
		audiences = []string{"sts.amazonaws.com"}
	}
	name := strings.TrimPrefix(issuer, "https://")
	p := &provider{name: name, arn: a.arn("iam", "", "oidc-provider/"+name), keys: keys, audiences: audiences}
	a.providers[name] = p
	return p.arn
}

// AddOIDCProviderJWKS is AddOIDCProvider with the keys as a JSON Web Key Set, in the format that a kube-apiserver serves at /openid/v1/jwks.
func (a *Account) AddOIDCProviderJWKS(issuer string, jwks []byte, audiences ...string) (string, error) {
	var set struct{ Keys []jwt.JWK }
	if err := json.Unmarshal(jwks, &set); err != nil {
		return "", err
	}
	var keys []crypto.PublicKey
	for _, k := range set.Keys {
		key, err := k.Public()
		if err != nil {
			return "", err
		}
		keys = append(keys, key)
	}
	return a.AddOIDCProvider(issuer, keys, audiences...), nil
}

// AddRole adds a role and returns its ARN. A role with an ID is one that was deleted: IAM may still show it for a moment.
func (a *Account) AddRole(from Role) (string, error) {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	if from.Path == "" {
		from.Path = "/"
	}
	if from.MaxSessionDuration == 0 {
		from.MaxSessionDuration = time.Hour
	}
	r, err := a.newRole(from.Name, from.Path, from.Trust)
	if err != nil {
		return "", err
	}
	if from.ID != "" {
		delete(a.server.ids, r.id)
		r.id, a.server.ids[from.ID] = from.ID, true
	}
	r.description, r.maxSession = from.Description, from.MaxSessionDuration
	if err := a.give(r, from); err != nil {
		return "", err
	}
	a.roles[strings.ToLower(from.Name)] = r
	return r.arn, nil
}

// ChangeRole changes the trust, the policies, the boundary or the tags of a role, as other clients may.
func (a *Account) ChangeRole(name string, change func(*Role)) error {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	r := a.role(name)
	if r == nil {
		return api.Fail("NoSuchEntity", "The role with name %s cannot be found.", name)
	}
	role := a.describe(r)
	before := role.Trust
	change(&role)
	trust := r.trust
	if role.Trust != before {
		var err error
		trust, err = a.parseTrust(role.Trust)
		if err != nil {
			return err
		}
	}
	if err := a.give(r, role); err != nil {
		return err
	}
	r.trust = trust
	return nil
}

// give replaces the policies, the boundary and the tags of a role, or returns an error and changes none of them.
func (a *Account) give(r *role, from Role) error {
	policies := map[string]*iampolicy.Policy{}
	for name, text := range from.Policies {
		p, err := iampolicy.Parse(text, nil)
		if err != nil {
			return err
		}
		policies[name] = p
	}
	for _, arn := range from.Attached {
		if managedPolicy(a, arn) == nil {
			return api.Fail("NoSuchEntity", "Policy %s does not exist or is not attachable.", arn)
		}
	}
	if from.Boundary != "" {
		if err := a.checkBoundary(from.Boundary); err != nil {
			return err
		}
	}
	r.boundary = from.Boundary
	r.policies, r.attached, r.tags = policies, slices.Clone(from.Attached), nil
	for _, key := range slices.Sorted(maps.Keys(from.Tags)) {
		r.tags = append(r.tags, api.Tag{Key: key, Value: from.Tags[key]})
	}
	return nil
}

// RemoveRole deletes a role with everything that belongs to it.
func (a *Account) RemoveRole(name string) {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	a.deleteRole(name)
}

// Roles returns the roles by name. Tests compare the results before and after, to find leaks.
func (a *Account) Roles() map[string]Role {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	out := map[string]Role{}
	for _, r := range a.roles {
		out[r.name] = a.describe(r)
	}
	return out
}

func (a *Account) describe(r *role) Role {
	role := Role{
		Name: r.name, Path: r.path, Description: r.description, Trust: trustText(a, r.trust), ARN: r.arn, ID: r.id,
		Policies: map[string]string{}, Attached: slices.Sorted(slices.Values(r.attached)), Tags: map[string]string{}, MaxSessionDuration: r.maxSession,
		Boundary: r.boundary,
	}
	for name, p := range r.policies {
		role.Policies[name] = p.Text
	}
	for _, tag := range r.tags {
		role.Tags[tag.Key] = tag.Value
	}
	return role
}

func (a *Account) arn(service, region, resource string) string {
	return fmt.Sprintf("arn:%s:%s:%s:%s:%s", a.Partition, service, region, a.ID, resource)
}

// AddIssuer adds the OIDC provider of a new issuer, such as oidc.eks.us-west-2.amazonaws.com/id/ABC.
func (a *Account) AddIssuer(provider string) (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	i := &Issuer{URL: "https://" + provider, Provider: provider, key: key, server: a.server}
	a.AddOIDCProvider(i.URL, []crypto.PublicKey{key.Public()})
	return i, nil
}

// SetAWSAuth sets the authenticator for the users in a cluster's ConfigMap aws-auth, such as aws-iam-authenticator. The token webhook calls it for
// tokens without an access entry, unless the authentication mode of the cluster is API.
func (a *Account) SetAWSAuth(clusterARN string, webhook http.Handler) error {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	c := a.clusters[clusterARN]
	if c == nil {
		return errors.New("there is no cluster " + clusterARN)
	}
	c.awsAuth = webhook
	return nil
}
