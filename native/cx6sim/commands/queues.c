/* SPDX-License-Identifier: Apache-2.0 */
/* Commands for queues: event, completion, send and receive queues are made, changed, asked and destroyed. */
#include "cx6.h"

#define LOG_SIZE_MAX 22
#define LOG_STRIDE_MAX 10

static enum status make_eq(struct card *c, const struct command *cmd)
{
	struct view x = view_at(cmd->in, F(create_eq_in, eq_context_entry)), pas = view_at(cmd->in, A(create_eq_in, pas));
	struct view mask = view_at(cmd->in, F(create_eq_in, event_bitmask));
	uint32_t number, log_size = get(x, F(eqc, log_eq_size)), shift = get(x, F(eqc, log_page_size)) + 12;
	struct eq *eq;

	if (log_size > LOG_SIZE_MAX)
		return ST_BAD_PARAM;
	eq = object_make(c, KIND_EQ, &number);
	if (!eq)
		return ST_LIMIT;
	if (!ring_make(&eq->ring, pas, 64ULL << log_size, shift, get(x, F(eqc, page_offset)) * 64)) {
		object_drop(c, KIND_EQ, number);
		return ST_BAD_PARAM;
	}
	eq->log_size = log_size;
	eq->vector = get(x, F(eqc, intr));
	for (uint32_t i = 0; i < 4 && view_has(mask, 8 * i, 8); i++)
		eq->mask[i] = load64(mask.at + 8 * i);
	set(cmd->out, F(create_eq_out, eq_number), number);
	return ST_OK;
}

static enum status make_cq(struct card *c, const struct command *cmd)
{
	struct view x = view_at(cmd->in, F(create_cq_in, cq_context)), pas = view_at(cmd->in, A(create_cq_in, pas));
	uint32_t number, log_size = get(x, F(cqc, log_cq_size)), shift = get(x, F(cqc, log_page_size)) + 12;
	struct cq *cq;

	if (log_size > LOG_SIZE_MAX || get(x, F(cqc, cqe_sz)))
		return ST_BAD_PARAM;
	cq = object_make(c, KIND_CQ, &number);
	if (!cq)
		return ST_LIMIT;
	if (!ring_make(&cq->ring, pas, 64ULL << log_size, shift, get(x, F(cqc, page_offset)) * 64)) {
		object_drop(c, KIND_CQ, number);
		return ST_BAD_PARAM;
	}
	cq->log_size = log_size;
	cq->eq = get(x, F(cqc, c_eqn_or_apu_element));
	set(cmd->out, F(create_cq_out, cqn), number);
	return ST_OK;
}

static bool make_ring(struct ring *r, struct view wq, uint32_t log_size, uint32_t log_stride)
{
	return log_size <= LOG_SIZE_MAX && log_stride <= LOG_STRIDE_MAX &&
	       ring_make(r, view_at(wq, A(wq, pas)), 1ULL << (log_size + log_stride),
			 get(wq, F(wq, log_wq_pg_sz)) + 12, get(wq, F(wq, page_offset)) * 64);
}

static enum status make_sq(struct card *c, const struct command *cmd)
{
	struct view x = view_at(cmd->in, F(create_sq_in, ctx)), wq = view_at(x, F(sqc, wq));
	uint32_t number;
	struct sq *sq = object_make(c, KIND_SQ, &number);

	if (!sq)
		return ST_LIMIT;
	sq->log_size = get(wq, F(wq, log_wq_sz));
	if (get(wq, F(wq, log_wq_stride)) != 6 || !make_ring(&sq->ring, wq, sq->log_size, 6)) {
		object_drop(c, KIND_SQ, number);
		return ST_BAD_PARAM;
	}
	sq->cq = get(x, F(sqc, cqn));
	sq->doorbell = get64(wq, F(wq, dbr_addr));
	store32(cmd->out.at + 8, number);
	return ST_OK;
}

/* The number of strides is coded as a signed number of four bits around 512. */
static bool set_strides(struct rq *rq, struct view wq)
{
	uint32_t code = get(wq, F(wq, log_wqe_num_of_strides));

	rq->striding = get(wq, F(wq, wq_type)) == 2;
	rq->strides = 1u << (code > 7 ? code - 7 : code + 9);
	rq->stride_size = 1u << (get(wq, F(wq, log_wqe_stride_size)) + 6);
	return !rq->striding || rq->log_stride >= 5;
}

static enum status make_rq(struct card *c, const struct command *cmd)
{
	struct view x = view_at(cmd->in, F(create_rq_in, ctx)), wq = view_at(x, F(rqc, wq));
	uint32_t number;
	struct rq *rq = object_make(c, KIND_RQ, &number);

	if (!rq)
		return ST_LIMIT;
	rq->log_size = get(wq, F(wq, log_wq_sz));
	rq->log_stride = get(wq, F(wq, log_wq_stride));
	if (rq->log_stride < 4 || !make_ring(&rq->ring, wq, rq->log_size, rq->log_stride) || !set_strides(rq, wq)) {
		object_drop(c, KIND_RQ, number);
		return ST_BAD_PARAM;
	}
	rq->cq = get(x, F(rqc, cqn));
	rq->doorbell = get64(wq, F(wq, dbr_addr));
	rq->strips_vlan = !get(x, F(rqc, vsd));
	store32(cmd->out.at + 8, number);
	return ST_OK;
}

static enum status change_sq(struct card *c, const struct command *cmd)
{
	struct sq *sq = object_find(c, KIND_SQ, get(cmd->in, F(modify_sq_in, sqn)));
	uint32_t state = get(view_at(cmd->in, F(modify_sq_in, ctx)), F(sqc, state));

	if (!sq)
		return ST_BAD_RESOURCE;
	if (state == QUEUE_RESET || sq->state == QUEUE_ERROR)
		sq->at = 0;
	sq->state = state;
	return ST_OK;
}

enum { CHANGE_VSD = 1 << 1 };
static enum status change_rq(struct card *c, const struct command *cmd)
{
	struct rq *rq = object_find(c, KIND_RQ, get(cmd->in, F(modify_rq_in, rqn)));
	struct view x = view_at(cmd->in, F(modify_rq_in, ctx));

	if (!rq)
		return ST_BAD_RESOURCE;
	if (get64(cmd->in, F(modify_rq_in, modify_bitmask)) & CHANGE_VSD)
		rq->strips_vlan = !get(x, F(rqc, vsd));
	if (get(x, F(rqc, state)) == QUEUE_RESET) {
		rq->at = 0;
		rq->current = rq->used = 0;
	}
	rq->state = get(x, F(rqc, state));
	return ST_OK;
}

static enum status ask_sq(struct card *c, const struct command *cmd)
{
	struct sq *sq = object_find(c, KIND_SQ, get(cmd->in, F(query_sq_in, sqn)));

	if (!sq)
		return ST_BAD_RESOURCE;
	set(view_at(cmd->out, F(query_sq_out, sq_context)), F(sqc, state), sq->state);
	return ST_OK;
}

static enum status ask_rq(struct card *c, const struct command *cmd)
{
	struct rq *rq = object_find(c, KIND_RQ, get(cmd->in, F(query_rq_in, rqn)));

	if (!rq)
		return ST_BAD_RESOURCE;
	set(view_at(cmd->out, F(query_rq_out, rq_context)), F(rqc, state), rq->state);
	return ST_OK;
}

/* Moderation and size of a CQ, and what one asks of it: taken and not acted on. */
static enum status done(struct card *c, const struct command *cmd)
{
	(void)c, (void)cmd;
	return ST_OK;
}

static enum status destroy(struct card *c, const struct command *cmd)
{
	uint32_t number = load32(cmd->in.at + 8) & 0xffffff;
	enum kind kind = cmd->op == 0x302 ? KIND_EQ : cmd->op == 0x401 ? KIND_CQ : cmd->op == 0x906 ? KIND_SQ : KIND_RQ;

	return object_drop(c, kind, kind == KIND_EQ ? number & 0xff : number) ? ST_OK : ST_BAD_RESOURCE;
}

const struct verb queue_verbs[] = {
	{ 0x301, "CREATE_EQ", make_eq },     { 0x302, "DESTROY_EQ", destroy }, { 0x303, "QUERY_EQ", done },
	{ 0x400, "CREATE_CQ", make_cq },     { 0x401, "DESTROY_CQ", destroy }, { 0x402, "QUERY_CQ", done },
	{ 0x403, "MODIFY_CQ", done },	     { 0x904, "CREATE_SQ", make_sq },  { 0x905, "MODIFY_SQ", change_sq },
	{ 0x906, "DESTROY_SQ", destroy },    { 0x907, "QUERY_SQ", ask_sq },    { 0x908, "CREATE_RQ", make_rq },
	{ 0x909, "MODIFY_RQ", change_rq },   { 0x90a, "DESTROY_RQ", destroy }, { 0x90b, "QUERY_RQ", ask_rq },
	{ 0, NULL, NULL },
};
