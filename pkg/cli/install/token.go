// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// defaultTokenTTL is long enough for a day's work, and short because a leaked token can be used to request certificates.
	defaultTokenTTL = 24 * time.Hour
	// maxTokenTTL is longer than API servers grant.
	maxTokenTTL = 10 * 365 * 24 * time.Hour
	minTokenTTL = 10 * time.Minute
)

// These are keys of the Secret of a bootstrap token, and the group of its user.
const (
	tokenPrefix = "bootstrap-token-"
	tokenGroup  = "system:bootstrappers:managedcluster"
	// labelApp and upstreamApp are the label by which clusteradm get token --use-bootstrap-token finds the newest token.
	labelApp, upstreamApp = "app", "cluster-manager"
)

// tokenOptions are the flags of the commands that print the join command.
type tokenOptions struct {
	*kit.Options
	out            *kit.Format
	auths          []string
	hubARN         string
	rolePath       string
	server         string
	ttl            time.Duration
	bootstrapToken bool
	file           string
}

func (o *tokenOptions) addTo(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringSliceVar(&o.auths, "registration-auth", []string{kit.AuthCSR},
		"How clusters prove their identity: "+kit.AuthCSR+" (a certificate), "+kit.AuthAWS+" (AWS IAM; also spelled "+
			kit.AuthAWSOfSeed+"), or both.")
	fs.StringSliceVar(&o.auths, "registration-drivers", o.auths, "Same as --registration-auth.")
	kit.AddHubARNFlags(fs, &o.hubARN,
		"ARN of the hub's EKS cluster, for "+kit.AuthAWS+". Defaults to the name of the cluster in the kubeconfig.")
	kit.AddRolePathFlag(fs, &o.rolePath, "Defaults to that of the Deployment "+deploy.Manager+", or /.")
	fs.StringVar(&o.server, "hub-apiserver", "",
		"https URL by which the clusters reach the hub. Defaults to the one in the kubeconfig.")
	fs.DurationVar(&o.ttl, "token-ttl", defaultTokenTTL,
		"Lifetime of the token, from 10m to 87600h. The hub's API server may limit it further.")
	fs.BoolVar(&o.bootstrapToken, "use-bootstrap-token", false,
		"Create a short bootstrap token, as kubeadm does, instead of a token of a service account. The hub's API server must run with "+
			"--enable-bootstrap-token-auth.")
	fs.StringVar(&o.file, "output-join-command-file", "", "File to write the join command to, readable by its owner only.")
	kit.Must(cmd.RegisterFlagCompletionFunc("registration-auth",
		cobra.FixedCompletions([]string{kit.AuthCSR, kit.AuthAWS}, cobra.ShellCompDirectiveNoFileComp)))
	o.out.AddTo(cmd)
}

func (o *tokenOptions) validate() error {
	for i, auth := range o.auths {
		normalized, err := kit.NormalizeAuth(auth)
		if err != nil {
			return err
		}
		o.auths[i] = normalized
	}
	slices.Sort(o.auths)
	o.auths = slices.Compact(o.auths)
	if len(o.auths) == 0 {
		return fmt.Errorf("--registration-auth must be %s, %s or both", kit.AuthCSR, kit.AuthAWS)
	}
	if o.ttl < minTokenTTL || o.ttl > maxTokenTTL {
		return fmt.Errorf("--token-ttl must be from %s to %s, not %s", minTokenTTL, maxTokenTTL, o.ttl)
	}
	if o.server != "" {
		if err := kit.CheckServer(o.server); err != nil {
			return err
		}
	}
	if !slices.Contains(o.auths, kit.AuthAWS) {
		if o.rolePath != "" {
			return fmt.Errorf("--%s is for --registration-auth=%s", kit.RolePathFlag, kit.AuthAWS)
		}
		return nil
	}
	if _, err := irsa.ParseRolePath(o.rolePath); err != nil {
		return fmt.Errorf("--%s: %w", kit.RolePathFlag, err)
	}
	if o.hubARN == "" {
		o.hubARN = o.ContextARN()
	}
	if o.hubARN == "" {
		return errors.New("--hub-cluster-arn must be set, because the name of the cluster in the kubeconfig is not an ARN: " +
			"aws eks describe-cluster --name HUB --query cluster.arn prints the ARN of the hub's EKS cluster")
	}
	if _, err := irsa.ParseClusterARN(o.hubARN); err != nil {
		return fmt.Errorf("--hub-cluster-arn: %w", err)
	}
	return nil
}

// NewGetTokenCommand returns the command get token.
func NewGetTokenCommand(opts *kit.Options) *cobra.Command {
	o := &tokenOptions{Options: opts, out: kit.NewFormat("text", "json")}
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create a token for clusters to join the hub, and print the join command",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			h, err := opts.Hub()
			if err != nil {
				return err
			}
			return o.print(cmd.Context(), h, "")
		},
	}
	o.addTo(cmd)
	return cmd
}

// joining has what a cluster needs to join.
type joining struct {
	Token   string      `json:"hub-token"`
	Server  string      `json:"hub-apiserver"`
	CA      string      `json:"ca-data,omitempty"`
	Expires metav1.Time `json:"expires"`
	Command string      `json:"join-command"`
	// ByAWS is the command for clusters that register by AWS IAM, if Command is for those that register by certificate.
	ByAWS string `json:"join-command-awsirsa,omitempty"`
}

// commands returns the commands for users.
func (j *joining) commands() string {
	text := "    " + j.Command + "\n\n"
	if j.ByAWS != "" {
		text += "or, on EKS clusters that register by AWS IAM:\n\n    " + j.ByAWS + "\n\n"
	}
	return text
}

// print creates a token, and prints how to use it.
func (o *tokenOptions) print(ctx context.Context, h *kit.HubClient, heading string) error {
	j, err := o.newJoining(ctx, h)
	if err != nil {
		return err
	}
	if o.file != "" {
		if err := os.WriteFile(o.file, []byte(strings.TrimSpace(j.Command+"\n"+j.ByAWS)+"\n"), 0o600); err != nil {
			return fmt.Errorf("--output-join-command-file: %w", err)
		}
	}
	return o.out.Print(o.Out, j, "%sRun this on each cluster that should join the hub, with a name of its own:\n\n%s"+
		"The token is valid until %s.\n", heading, j.commands(), j.Expires.Format(time.RFC3339))
}

func (o *tokenOptions) newJoining(ctx context.Context, h *kit.HubClient) (*joining, error) {
	config := rest.CopyConfig(h.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	j := &joining{Server: config.Host, CA: base64.StdEncoding.EncodeToString(config.CAData)}
	if o.server != "" {
		j.Server = o.server
	}
	if config.Insecure {
		o.Warn("the kubeconfig does not verify the certificate of the hub: the clusters need --ca-file, unless their systems trust it")
	}
	if kit.IsLoopback(j.Server) {
		o.Warn("%s is this machine: clusters on other machines need another address of the hub (--hub-apiserver)", j.Server)
	}
	path, err := o.pathOf(ctx, h)
	if err != nil {
		return nil, err
	}
	if o.bootstrapToken {
		j.Token, j.Expires, err = o.newBootstrapToken(ctx, h)
	} else {
		j.Token, j.Expires, err = o.newAccountToken(ctx, h)
	}
	if err != nil {
		return nil, err
	}
	j.Command = o.joinCommand(j, o.auths[0], path)
	if len(o.auths) > 1 {
		j.Command, j.ByAWS = o.joinCommand(j, kit.AuthCSR, path), o.joinCommand(j, kit.AuthAWS, path)
	}
	return j, nil
}

// pathOf returns the path of the hub's roles for agents: the value of the flag or, if it is not set, the one that the hub is configured with.
func (o *tokenOptions) pathOf(ctx context.Context, h *kit.HubClient) (irsa.RolePath, error) {
	if o.rolePath != "" || !slices.Contains(o.auths, kit.AuthAWS) {
		return irsa.ParseRolePath(o.rolePath)
	}
	m := h.Manager(ctx)
	if m == nil {
		return "", nil
	}
	path, err := irsa.ParseRolePath(m.RolePath)
	if err != nil {
		return "", fmt.Errorf("%s runs with an invalid --%s: %w", deploy.Manager, kit.RolePathFlag, err)
	}
	return path, nil
}

// joinCommand returns a command that contains the certificate authority, so that join never sends the token to a server that it does not trust.
func (o *tokenOptions) joinCommand(j *joining, auth string, path irsa.RolePath) string {
	args := []string{"kubectl hub join", "--hub-token", j.Token, "--hub-apiserver", j.Server}
	if j.CA != "" {
		args = append(args, "--ca-data", j.CA)
	}
	if auth == kit.AuthAWS {
		args = append(args, "--registration-auth", kit.AuthAWS, "--eks-hub-cluster-arn", o.hubARN)
		if path != "" {
			args = append(args, "--"+kit.RolePathFlag, path.String())
		}
	}
	return strings.Join(append(args, "--wait", "--cluster-name", "<cluster_name>"), " ")
}

func (o *tokenOptions) newAccountToken(ctx context.Context, h *kit.HubClient) (string, metav1.Time, error) {
	account := strings.Split(registration.BootstrapServiceAccount, ":")
	namespace, name := account[2], account[3]
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(o.ttl.Seconds()))}}
	made, err := h.Kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return "", metav1.Time{}, errors.New("the hub is not prepared for clusters to join: run kubectl hub init first")
	}
	if err != nil {
		return "", metav1.Time{}, err
	}
	return made.Status.Token, made.Status.ExpirationTimestamp, nil
}

// newBootstrapToken creates a bootstrap token. It also deletes those that have expired: a hub need not run the controller for that.
func (o *tokenOptions) newBootstrapToken(ctx context.Context, h *kit.HubClient) (string, metav1.Time, error) {
	secrets := h.Kube.CoreV1().Secrets(metav1.NamespaceSystem)
	id, secret := strings.ToLower(rand.Text()[:6]), strings.ToLower(rand.Text()[:16])
	expires := metav1.NewTime(time.Now().Add(o.ttl).Truncate(time.Second))
	_, err := secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: tokenPrefix + id,
			Labels: map[string]string{deploy.LabelManagedBy: deploy.ManagedBy, labelApp: upstreamApp}},
		Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"description":                    "For clusters to join the hub. Created by kubectl hub.",
			"token-id":                       id,
			"token-secret":                   secret,
			"expiration":                     expires.UTC().Format(time.RFC3339),
			"usage-bootstrap-authentication": "true",
			"auth-extra-groups":              tokenGroup,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", metav1.Time{}, err
	}
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: deploy.LabelManagedBy + "=" + deploy.ManagedBy,
		FieldSelector: "type=" + string(corev1.SecretTypeBootstrapToken)})
	if err != nil {
		return "", metav1.Time{}, err
	}
	for i := range list.Items {
		until, err := time.Parse(time.RFC3339, string(list.Items[i].Data["expiration"]))
		if err != nil || time.Now().Before(until) {
			continue
		}
		if err := secrets.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return "", metav1.Time{}, err
		}
	}
	return id + "." + secret, expires, nil
}
