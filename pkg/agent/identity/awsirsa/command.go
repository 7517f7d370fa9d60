// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
)

// NewTokenCommand returns the command eks-token.
func NewTokenCommand() *cobra.Command {
	tokens := &Tokens{}
	cmd := &cobra.Command{
		Use:   "eks-token",
		Short: "Print a token for an EKS cluster, as a credential plugin of kubectl and client-go",
		Long: "eks-token prints an ExecCredential with a token for an EKS cluster, as \"aws eks get-token\" does. " +
			"It gets its AWS credentials as the AWS CLI does, from the STS of AWS_REGION; the default of AWS_REGION is --region.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := tokens.validate(); err != nil {
				return err
			}
			return tokens.print(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&tokens.Cluster, "cluster-name", "", "The name of the EKS cluster that the token is for.")
	flags.StringVar(&tokens.Region, "region", "", "The AWS region of the EKS cluster.")
	flags.StringVar(&tokens.RoleARN, "role-arn", "", "The ARN of the IAM role to assume first.")
	return cmd
}

func (e *Tokens) validate() error {
	role, err := arn.Parse(e.RoleARN)
	switch {
	case e.Cluster == "" || e.Region == "":
		return errors.New("--cluster-name and --region must be set")
	case arn.IsARN(e.Cluster):
		return fmt.Errorf("--cluster-name must be the name at the end of the ARN, not %q", e.Cluster)
	case e.RoleARN != "" && (err != nil || role.Service != "iam" || !strings.HasPrefix(role.Resource, "role/")):
		return fmt.Errorf("--role-arn must be the ARN of an IAM role, not %q", e.RoleARN)
	}
	return nil
}

func (e *Tokens) print(ctx context.Context, out io.Writer) error {
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
