// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/clusterhub/clusterhub/pkg/agent/identity"
)

const (
	// tokenLife is the time for which a token is used. EKS accepts a token for 15 minutes after its signature.
	tokenLife   = 14 * time.Minute
	tokenPrefix = "k8s-aws-v1."
	// tokenMargin is the time before its expiry at which a token is replaced.
	tokenMargin = time.Minute
	// maxSkew is the maximum clock skew. AWS allows more, but the token must stay valid for some time.
	maxSkew = 5 * time.Minute
)

// Tokens creates tokens for an EKS cluster. A token is a presigned STS request for the identity of its signer, which EKS sends.
type Tokens struct {
	// Cluster and Region are the name and region of the hub.
	Cluster, Region string
	// OwnRegion is the region whose STS is used when AWS's configuration (AWS_REGION, AWS_DEFAULT_REGION, a profile) names no region. The default is
	// Region. A cluster without access to the internet may only reach the STS of its own region.
	OwnRegion string
	// RoleARN is the role that the token is for; if it is empty, the token is for the process's own role.
	RoleARN string

	mu sync.Mutex
	// credentials are used by client to sign. Both are nil if they must be retrieved again: AWS may revoke credentials long before they expire.
	credentials aws.CredentialsProvider
	client      *sts.PresignClient
	token       string
	until       time.Time
	// skew is the time by which AWS's clock was ahead of the local clock at the last request.
	skew atomic.Int64
}

// get returns a token, and the time when it expires.
func (e *Tokens) get(ctx context.Context) (string, time.Time, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.token != "" && time.Now().Before(e.until.Add(-tokenMargin)) {
		return e.token, e.until, nil
	}
	url, until, err := e.sign(ctx)
	if err != nil {
		// If AWS denies the role, the process's own credentials are valid, and stay.
		if refused := (*identity.RefusedError)(nil); !errors.As(err, &refused) {
			e.credentials, e.client = nil, nil
		}
		return "", time.Time{}, fmt.Errorf("creating a token for EKS cluster %s: %w", e.Cluster, err)
	}
	e.token, e.until = tokenPrefix+base64.RawURLEncoding.EncodeToString([]byte(url)), until
	return e.token, e.until, nil
}

func (e *Tokens) sign(ctx context.Context) (url string, until time.Time, err error) {
	if e.client == nil {
		if err := e.setup(ctx); err != nil {
			return "", time.Time{}, err
		}
	}
	credentials, err := e.credentials.Retrieve(ctx)
	if err != nil {
		return "", time.Time{}, e.refusal(err)
	}
	// The SDK corrects the time of its own requests, but not that of a request which it only signs.
	if skew := time.Duration(e.skew.Load()).Abs(); skew > maxSkew {
		return "", time.Time{}, fmt.Errorf("this machine's clock differs from the clock of AWS by %s: set the clock, otherwise AWS rejects "+
			"the token", skew.Round(time.Minute))
	}
	// A token is valid no longer than the credentials that it was signed with.
	until = time.Now().Add(tokenLife)
	if credentials.CanExpire && credentials.Expires.Before(until) {
		until = credentials.Expires
	}
	request, err := e.client.PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, func(o *sts.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("x-k8s-aws-id", e.Cluster),
				smithyhttp.SetHeaderValue("X-Amz-Expires", "60"))
		})
	})
	if err != nil {
		return "", time.Time{}, errors.New(awsCause(err))
	}
	return request.URL, until, nil
}

// loadConfig loads the configuration of AWS without the SDK's log: the SDK writes lines of its own to stderr, which kubectl shows as the reason why
// there is no token. Failures are returned as an error.
func loadConfig(ctx context.Context, region string) (aws.Config, error) {
	return config.LoadDefaultConfig(ctx, config.WithDefaultRegion(region), config.WithLogger(logging.Nop{}))
}

// setup finds the process's own credentials as AWS's tools do; in EKS those of the service account (IRSA).
func (e *Tokens) setup(ctx context.Context) error {
	c, err := loadConfig(ctx, cmp.Or(e.OwnRegion, e.Region))
	if err == nil {
		_, err = c.Credentials.Retrieve(ctx)
	}
	if err != nil {
		return fmt.Errorf("this process has no AWS credentials (EKS sets the environment of a ServiceAccount with a role; here "+
			"AWS_ROLE_ARN is %q and AWS_WEB_IDENTITY_TOKEN_FILE is %q): %s",
			os.Getenv("AWS_ROLE_ARN"), os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), awsCause(err))
	}
	if e.RoleARN != "" {
		client := sts.NewFromConfig(c, func(o *sts.Options) { o.APIOptions = append(o.APIOptions, e.watchClock) })
		role := stscreds.NewAssumeRoleProvider(client, e.RoleARN, func(o *stscreds.AssumeRoleOptions) {
			// AWS allows no longer session to a process that has already assumed a role.
			o.RoleSessionName, o.Duration = "hub-agent", time.Hour
		})
		c.Credentials = aws.NewCredentialsCache(role, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = tokenMargin })
	}
	e.credentials, e.client = c.Credentials, sts.NewPresignClient(sts.NewFromConfig(c, func(o *sts.Options) {
		o.Region = e.Region // EKS sends it there
	}))
	return nil
}

// watchClock records the difference to AWS's clock.
func (e *Tokens) watchClock(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("WatchClock", func(ctx context.Context,
		in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleDeserialize(ctx, in)
		if skew, ok := awsmiddleware.GetAttemptSkew(metadata); ok {
			e.skew.Store(int64(skew))
		}
		return out, metadata, err
	}), middleware.Before)
}

func (e *Tokens) refusal(err error) error {
	message := fmt.Sprintf("assuming the role %s: %s", e.RoleARN, awsCause(err))
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "AccessDenied" && lastOperation(err).Operation() == "AssumeRole" {
		return &identity.RefusedError{Message: message}
	}
	return errors.New(message)
}

// lastOperation returns the innermost operation that failed: one operation may get its credentials by another.
func lastOperation(err error) (last *smithy.OperationError) {
	for next := last; errors.As(err, &next); err = next.Err {
		last = next
	}
	return last
}

// awsCause returns the cause of an error in one line, without details that differ each time.
func awsCause(err error) string {
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

// drop discards a token that was rejected, and the credentials that it was created with: the role may have changed.
func (e *Tokens) drop(token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.token == token {
		e.token, e.credentials, e.client = "", nil, nil
	}
}

// wrap adds a token to each request.
func (e *Tokens) wrap(base http.RoundTripper) http.RoundTripper {
	return &tokenTransport{tokens: e, base: base}
}

type tokenTransport struct {
	tokens *Tokens
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
