// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {Treasury} from "./Treasury.sol";
import {VoteToken} from "./VoteToken.sol";

/// @title Chamber
/// @notice Token holders decide on payments. Urgent motions need two thirds of all tokens and lie open for a day.
contract Chamber {
    struct Motion {
        address payable to;
        uint256 amount;
        uint256 openedAt;
        uint256 support;
        bool done;
    }

    uint256 public constant OPEN_FOR = 1 days;

    VoteToken public immutable token;
    Treasury public treasury;
    Motion[] public motions;
    mapping(uint256 => mapping(address => bool)) public supported;

    event Opened(uint256 indexed id, address indexed to, uint256 amount);
    event Supported(uint256 indexed id, address indexed holder, uint256 weight);
    event Carried(uint256 indexed id);

    constructor(VoteToken token_) payable {
        token = token_;
        treasury = new Treasury{value: msg.value}(address(this));
    }

    /// @notice Votes of an account.
    function weightOf(address account) public view returns (uint256) {
        return token.balanceOf(account);
    }

    function open(address payable to, uint256 amount) external returns (uint256 id) {
        require(weightOf(msg.sender) > 0, "no votes");
        id = motions.length;
        motions.push(Motion(to, amount, block.timestamp, 0, false));
        emit Opened(id, to, amount);
    }

    function support(uint256 id) external {
        require(!supported[id][msg.sender], "already supported");
        uint256 weight = weightOf(msg.sender);
        supported[id][msg.sender] = true;
        motions[id].support += weight;
        emit Supported(id, msg.sender, weight);
    }

    /// @notice Carries an urgent motion out.
    function commitNow(uint256 id) external {
        Motion storage motion = motions[id];
        require(!motion.done && block.timestamp >= motion.openedAt + OPEN_FOR, "not yet");
        require(motion.support * 3 >= token.totalSupply() * 2, "no majority");
        motion.done = true;
        emit Carried(id);
        treasury.pay(motion.to, motion.amount);
    }
}
