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
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// mostSkew is how far the clock may be off. AWS allows for more, but the token has to live.
	mostSkew = 5 * time.Minute
)

// eksTokens makes tokens for an EKS cluster: presigned requests to STS for who the signer is, which EKS sends off.
type eksTokens struct {
	cluster, region string
	// roleARN is the role that the token is for; without one it is for the process's own.
	roleARN string

	mu sync.Mutex
	// credentials are what client signs with. Both are nil when they are to be got anew: AWS may take credentials back long
	// before they end.
	credentials aws.CredentialsProvider
	client      *sts.PresignClient
	token       string
	until       time.Time
	// skew is by how much AWS's clock was ahead of this one when it was last asked.
	skew atomic.Int64
}

// get returns a token and when to ask for the next.
func (e *eksTokens) get(ctx context.Context) (string, time.Time, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.token != "" && time.Now().Before(e.until.Add(-eksTokenMargin)) {
		return e.token, e.until, nil
	}
	url, until, err := e.sign(ctx)
	if err != nil {
		// The process's own credentials are good if they were let in, and then only the role is not.
		if refused := (*roleRefusedError)(nil); !errors.As(err, &refused) {
			e.credentials, e.client = nil, nil
		}
		return "", time.Time{}, fmt.Errorf("making a token for EKS cluster %s: %w", e.cluster, err)
	}
	e.token, e.until = eksTokenPrefix+base64.RawURLEncoding.EncodeToString([]byte(url)), until
	return e.token, e.until, nil
}

func (e *eksTokens) sign(ctx context.Context) (url string, until time.Time, err error) {
	if e.client == nil {
		if err := e.setup(ctx); err != nil {
			return "", time.Time{}, err
		}
	}
	credentials, err := e.credentials.Retrieve(ctx)
	if err != nil {
		return "", time.Time{}, e.refusal(err)
	}
	// The SDK puts the time of its own requests right, but not that of one which it only signs.
	if skew := time.Duration(e.skew.Load()).Abs(); skew > mostSkew {
		return "", time.Time{}, fmt.Errorf("this machine's clock differs from that of AWS by %s: set it, or AWS does not take "+
			"the token", skew.Round(time.Minute))
	}
	// A token is good as long as the credentials are that it was made with.
	until = time.Now().Add(eksTokenLife)
	if credentials.CanExpire && credentials.Expires.Before(until) {
		until = credentials.Expires
	}
	request, err := e.client.PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, func(o *sts.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("x-k8s-aws-id", e.cluster),
				smithyhttp.SetHeaderValue("X-Amz-Expires", "60"))
		})
	})
	if err != nil {
		return "", time.Time{}, errors.New(awsSays(err))
	}
	return request.URL, until, nil
}

// setup finds the process's own credentials as AWS's tools do; in EKS those of the service account (IRSA).
func (e *eksTokens) setup(ctx context.Context) error {
	c, err := config.LoadDefaultConfig(ctx, config.WithRegion(e.region))
	if err == nil {
		_, err = c.Credentials.Retrieve(ctx)
	}
	if err != nil {
		return fmt.Errorf("this process has no AWS credentials (EKS sets the environment of a ServiceAccount with a role; here "+
			"AWS_ROLE_ARN is %q and AWS_WEB_IDENTITY_TOKEN_FILE is %q): %s",
			os.Getenv("AWS_ROLE_ARN"), os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), awsSays(err))
	}
	if e.roleARN != "" {
		client := sts.NewFromConfig(c, func(o *sts.Options) { o.APIOptions = append(o.APIOptions, e.watchClock) })
		role := stscreds.NewAssumeRoleProvider(client, e.roleARN, func(o *stscreds.AssumeRoleOptions) {
			// AWS gives no longer session to whoever is a role already.
			o.RoleSessionName, o.Duration = "hub-agent", time.Hour
		})
		c.Credentials = aws.NewCredentialsCache(role, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = eksTokenMargin })
	}
	e.credentials, e.client = c.Credentials, sts.NewPresignClient(sts.NewFromConfig(c))
	return nil
}

// watchClock notes what time it is for AWS.
func (e *eksTokens) watchClock(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("WatchClock", func(ctx context.Context,
		in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleDeserialize(ctx, in)
		if skew, ok := awsmiddleware.GetAttemptSkew(metadata); ok {
			e.skew.Store(int64(skew))
		}
		return out, metadata, err
	}), middleware.Before)
}

// roleRefusedError is that AWS does not let the agent assume its role on the hub. The hub makes the role when it accepts
// the cluster and removes it when it does not any more: this is the hub's Forbidden, in AWS's words.
type roleRefusedError struct{ message string }

var _ apierrors.APIStatus = &roleRefusedError{}

func (e *roleRefusedError) Error() string { return e.message }

// Status implements errors.APIStatus.
func (e *roleRefusedError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: e.message}
}

func (e *eksTokens) refusal(err error) error {
	message := fmt.Sprintf("assuming the role %s: %s", e.roleARN, awsSays(err))
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "AccessDenied" && lastOperation(err).Operation() == "AssumeRole" {
		return &roleRefusedError{message}
	}
	return errors.New(message)
}

// lastOperation is what has failed: one operation gets its credentials by another.
func lastOperation(err error) (last *smithy.OperationError) {
	for next := last; errors.As(err, &next); err = next.Err {
		last = next
	}
	return last
}

// awsSays is what is wrong, in one line, without what is different each time.
func awsSays(err error) string {
	var (
		api  smithy.APIError
		send *smithyhttp.RequestSendError
	)
	if operation := lastOperation(err); operation != nil {
		err = operation.Err
	}
	switch {
	case errors.As(err, &api):
		err = fmt.Errorf("%s: %s", api.ErrorCode(), api.ErrorMessage())
	case errors.As(err, &send):
		err = send.Err
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// drop forgets a token that was refused, and the credentials that it was made with: the role may be another by now.
func (e *eksTokens) drop(token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.token == token {
		e.token, e.credentials, e.client = "", nil, nil
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
			if err := tokens.validate(); err != nil {
				return err
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

func (e *eksTokens) validate() error {
	role, err := arn.Parse(e.roleARN)
	switch {
	case e.cluster == "" || e.region == "":
		return errors.New("--cluster-name and --region must be set")
	case arn.IsARN(e.cluster):
		return fmt.Errorf("--cluster-name must be the name at the end of the ARN, not %q", e.cluster)
	case e.roleARN != "" && (err != nil || role.Service != "iam" || !strings.HasPrefix(role.Resource, "role/")):
		return fmt.Errorf("--role-arn must be the ARN of an IAM role, not %q", e.roleARN)
	}
	return nil
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
