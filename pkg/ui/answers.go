// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
	"github.com/clusterhub/clusterhub/pkg/ui/states"
)

const (
	// maxAnswers and maxAnswersOfAll are the largest numbers of concurrent answers for one visitor and for all: each needs many reads.
	maxAnswers, maxAnswersOfAll = 2, 4
	// patience is the time for which something may wait for a person before it is a finding. It is the default of kubectl hub doctor.
	patience = time.Hour
	// maxOfAKind is the largest number of objects of a kind that are read for all visitors together.
	maxOfAKind = 5000
	// maxName is the largest length of a name in a question: names of users are longer than those of objects.
	maxName = 1 << 10
)

// answerer computes an answer.
type answerer func(ctx context.Context, config *rest.Config, where []string) (any, error)

// why is an answer with a link to the page that explains the finding.
type why struct {
	*diagnosis.Answer
	Link string `json:"link,omitempty"`
	// Tone is how good the verdict is.
	Tone states.Tone `json:"tone"`
}

// found is a finding of a report with such a link.
type found struct {
	diagnosis.Finding
	Link string `json:"link"`
}

// whys are the questions of GET /answers/why, by their topic and the number of names.
var whys = map[string]struct {
	names int
	ask   func(ctx context.Context, h *answers.HubView, names []string) (*diagnosis.Answer, error)
}{
	"cluster": {1, func(ctx context.Context, h *answers.HubView, n []string) (*diagnosis.Answer, error) {
		return h.WhyCluster(ctx, n[0])
	}},
	"member": {2, func(ctx context.Context, h *answers.HubView, n []string) (*diagnosis.Answer, error) {
		return h.WhyMember(ctx, n[0], n[1])
	}},
	"placement": {3, func(ctx context.Context, h *answers.HubView, n []string) (*diagnosis.Answer, error) {
		return h.WhyPlacement(ctx, n[0], n[1], n[2])
	}},
	"work": {2, func(ctx context.Context, h *answers.HubView, n []string) (*diagnosis.Answer, error) {
		return h.WhyWork(ctx, n[0], n[1], nil)
	}},
	"accessrequest": {2, func(ctx context.Context, h *answers.HubView, n []string) (*diagnosis.Answer, error) {
		return h.WhyAccessRequest(ctx, n[0], n[1])
	}},
}

// accessParameters are the parameters of GET /answers/why/access.
var accessParameters = []string{"group", "namespace", "user", "verb", "what"}

// askAnswer returns the answerer for a path below /answers, or a refusal.
func askAnswer(method, path, query string) (answerer, *refusal) {
	if method != http.MethodGet {
		return nil, refuse(http.StatusMethodNotAllowed, "expected GET")
	}
	parts, ok := split(path)
	if !ok {
		return nil, refuse(http.StatusBadRequest, "the path is not one of a question: expected names with a slash between two of them")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the parameters cannot be read: expected name=value with & between two of them")
	}
	parameters := []string(nil)
	if slices.Equal(parts, []string{"why", "access"}) {
		parameters = accessParameters
	}
	for name, all := range values {
		if !slices.Contains(parameters, name) || len(all) != 1 || len(all[0]) > maxName {
			return nil, refuse(http.StatusBadRequest, "expected one or none of each of the parameters %q, and no others", parameters)
		}
	}
	switch {
	case parameters != nil:
		return askAccess(values)
	case slices.Equal(parts, []string{"doctor"}):
		return askDoctor, nil
	case slices.Equal(parts, []string{"hub"}):
		return func(ctx context.Context, config *rest.Config, _ []string) (any, error) {
			r, err := answers.NewReader(ctx, config, false)
			if err != nil {
				return nil, err
			}
			return states.OfHub(r.State(ctx)), nil
		}, nil
	case len(parts) == 3 && parts[0] == "who" && parts[1] == "cluster":
		return func(ctx context.Context, config *rest.Config, _ []string) (any, error) {
			h, err := answers.New(config)
			if err != nil {
				return nil, err
			}
			who, err := h.WhoMay(ctx, parts[2])
			return map[string]any{"who": who}, err
		}, nil
	case len(parts) > 2 && parts[0] == "why" && whys[parts[1]].names == len(parts)-2:
		ask := whys[parts[1]].ask
		return because(func(ctx context.Context, h *answers.HubView) (*diagnosis.Answer, error) {
			return ask(ctx, h, parts[2:])
		}), nil
	}
	return nil, refuse(http.StatusNotFound, "there is no such question")
}

func askAccess(values url.Values) (answerer, *refusal) {
	asked := answers.Access{User: values.Get("user"), Verb: values.Get("verb"), What: values.Get("what"), Namespace: values.Get("namespace")}
	if asked.User == "" || asked.Verb == "" || asked.What == "" {
		return nil, refuse(http.StatusBadRequest, "expected a user, a verb, and what it is about: a label KEY=VALUE, set/NAME or cluster/NAME")
	}
	if groups := values.Get("group"); groups != "" {
		asked.Groups = strings.Split(groups, ",")
	}
	return because(func(ctx context.Context, h *answers.HubView) (*diagnosis.Answer, error) {
		return h.WhyAccess(ctx, asked)
	}), nil
}

// because returns an answerer for the page.
func because(ask func(context.Context, *answers.HubView) (*diagnosis.Answer, error)) answerer {
	return func(ctx context.Context, config *rest.Config, where []string) (any, error) {
		h, err := answers.New(config)
		if err != nil {
			return nil, err
		}
		a, err := ask(ctx, h)
		if err != nil {
			return nil, err
		}
		shown := why{Answer: a, Tone: states.OfAnswer(a)}
		if f := a.Finding; f != nil {
			f.Fix, shown.Link = diagnosis.At(f.Fix, where...), f.Link()
		}
		return shown, nil
	}
}

func askDoctor(ctx context.Context, config *rest.Config, where []string) (any, error) {
	r, err := answers.NewReader(ctx, config, false)
	if err != nil {
		return nil, err
	}
	r.Most = maxOfAKind
	switch isHub, err := r.IsHub(ctx); {
	case err != nil:
		return nil, err
	case !isHub:
		return nil, &answers.NotServedError{Err: apierrors.NewNotFound(clusterv1.Resource("managedclusters"), "")}
	}
	// There is no dry run: the page sends no requests that could be a write.
	report, err := r.Hub(ctx, answers.HubOptions{Patience: patience, Version: command.Version()})
	if err != nil {
		return nil, err
	}
	findings := []found{}
	for _, f := range report.Findings {
		f.Fix = diagnosis.At(f.Fix, where...)
		findings = append(findings, found{f, f.Link()})
	}
	return map[string]any{"findings": findings, "checked": report.Checked, "unseen": append(report.Unseen, r.Unseen...)}, nil
}

// serveAnswer explains the state of something, like kubectl hub, with the permissions of the user.
func (s *Server) serveAnswer(w http.ResponseWriter, r *http.Request, path, query string) *refusal {
	visitor, refused := s.door.letIn(r)
	if refused != nil {
		return refused
	}
	ask, refused := askAnswer(r.Method, path, query)
	if refused != nil {
		return refused
	}
	done, refused := s.answering.begin(visitor.key)
	if refused != nil {
		return refused
	}
	defer done()
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	answer, err := ask(ctx, s.hub.as(visitor), s.where)
	if err != nil {
		return s.hub.errorResponse(err)
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// as returns a configuration for the hub with the credentials of the user.
func (u *upstream) as(v visitor) *rest.Config {
	config := rest.CopyConfig(u.config)
	config.BearerToken = v.token
	if v.token == "" {
		config.BearerToken = u.config.BearerToken
	}
	config.QPS, config.Timeout, config.WarningHandler = -1, min(u.timeout, answers.MaxRead), rest.NoWarnings{}
	return config
}

// errorResponse returns the refusal for an error.
func (u *upstream) errorResponse(err error) *refusal {
	var status apierrors.APIStatus
	if notServed := (*answers.NotServedError)(nil); errors.As(err, &notServed) {
		if err = notServed.Err; apierrors.IsNotFound(err) {
			return refuse(http.StatusNotFound, "%s is not a hub: it does not serve clusters", withoutPassword(u.base))
		}
	}
	switch {
	case apierrors.IsUnauthorized(err):
		return refuse(http.StatusUnauthorized, "the hub %s does not accept the credentials", withoutPassword(u.base)).fromHub()
	case errors.As(err, &status) && status.Status().Code >= 400 && reasons[int(status.Status().Code)] != "":
		return refuse(int(status.Status().Code), "%s", command.ErrorLine(err)).fromHub()
	case errors.As(err, &status) && status.Status().Code >= 500:
		return refuse(http.StatusBadGateway, "the hub %s answers: %s", withoutPassword(u.base), command.ErrorLine(err))
	case errors.As(err, new(*url.Error)), errors.Is(err, context.DeadlineExceeded):
		return u.unreachable(err)
	}
	// The object does not exist, or the question is not valid.
	return refuse(http.StatusBadRequest, "%s", command.ErrorLine(err))
}
