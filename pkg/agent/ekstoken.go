// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
)

const (
	// eksTokenLife is how long a token is used. EKS takes one for 15 minutes after its signature.
	eksTokenLife   = 14 * time.Minute
	eksTokenPrefix = "k8s-aws-v1."
	// eksTokenMargin is how long before its end a token is replaced.
	eksTokenMargin = time.Minute
)

// eksTokens makes tokens for an EKS cluster: presigned requests to STS for who the signer is, which EKS sends off.
type eksTokens struct {
	cluster, region string
	// roleARN is the role that the token is for; without one it is for the process's own.
	roleARN string

	mu     sync.Mutex
	client *sts.PresignClient
	token  string
	until  time.Time
}

// get returns a token and when to ask for the next.
func (e *eksTokens) get(ctx context.Context) (string, time.Time, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.token != "" && time.Now().Before(e.until.Add(-eksTokenMargin)) {
		return e.token, e.until, nil
	}
	if e.client == nil {
		if err := e.setup(ctx); err != nil {
			return "", time.Time{}, err
		}
	}
	signed := time.Now()
	request, err := e.client.PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, func(o *sts.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("x-k8s-aws-id", e.cluster),
				smithyhttp.SetHeaderValue("X-Amz-Expires", "60"))
		})
	})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("making a token for EKS cluster %s: %w", e.cluster, err)
	}
	e.token = eksTokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(request.URL))
	e.until = signed.Add(eksTokenLife)
	return e.token, e.until, nil
}

// setup finds the process's own credentials as AWS's tools do; in EKS those of the service account (IRSA).
func (e *eksTokens) setup(ctx context.Context) error {
	c, err := config.LoadDefaultConfig(ctx, config.WithRegion(e.region))
	if err != nil {
		return fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if e.roleARN != "" {
		c.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(c), e.roleARN,
			func(o *stscreds.AssumeRoleOptions) { o.RoleSessionName = "hub-agent" }))
	}
	e.client = sts.NewPresignClient(sts.NewFromConfig(c))
	return nil
}

// drop forgets a token that was refused.
func (e *eksTokens) drop(token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.token == token {
		e.token = ""
	}
}

// wrap sends a token with each request.
func (e *eksTokens) wrap(base http.RoundTripper) http.RoundTripper {
	return &tokenTransport{tokens: e, base: base}
}

type tokenTransport struct {
	tokens *eksTokens
	base   http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = &tokenTransport{}

// RoundTrip implements http.RoundTripper.
func (t *tokenTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	token, _, err := t.tokens.get(request.Context())
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	request = utilnet.CloneRequest(request)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := t.base.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		t.tokens.drop(token)
	}
	return response, err
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t *tokenTransport) WrappedRoundTripper() http.RoundTripper { return t.base }

func newEKSTokenCommand() *cobra.Command {
	tokens := &eksTokens{}
	cmd := &cobra.Command{
		Use:   "eks-token",
		Short: "Print a token for an EKS cluster, as a credential plugin of kubectl and client-go",
		Long: "eks-token prints an ExecCredential with a token for an EKS cluster, as \"aws eks get-token\" does. " +
			"It takes its AWS credentials from where AWS's tools do.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tokens.cluster == "" || tokens.region == "" {
				return errors.New("--cluster-name and --region must be set")
			}
			return tokens.print(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&tokens.cluster, "cluster-name", "", "Name of the EKS cluster that the token is for.")
	flags.StringVar(&tokens.region, "region", "", "AWS region of that cluster.")
	flags.StringVar(&tokens.roleARN, "role-arn", "", "ARN of the IAM role to assume first.")
	return cmd
}

func (e *eksTokens) print(ctx context.Context, out io.Writer) error {
	token, until, err := e.get(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(clientauthv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthv1.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status: &clientauthv1.ExecCredentialStatus{
			Token: token, ExpirationTimestamp: new(metav1.NewTime(until.UTC().Truncate(time.Second)))},
	})
}
